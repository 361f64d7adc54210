import HeraldModel
import Logging
import Synchronization

/// Knows whether notifications come faster than Herald can store them, and tells the operator once.
///
/// A store that is full for a moment takes more after its next commit. So the state lasts for a while after each refusal.
final class Overload: Sendable {
    /// The time after the last refusal in which the service counts as overloaded.
    static let memory = Duration.seconds(5)
    /// The time without a refusal after which the log says that the overload is over.
    static let quiet = Duration.seconds(60)

    private struct State {
        var last: WallTime?
        /// Refusals since the operator was told; nil if all is well.
        var refused: Int?
    }

    private let clock: any WallClock
    private let logger: Logger
    private let state = Mutex(State())

    init(clock: any WallClock, logger: Logger) {
        self.clock = clock
        self.logger = logger
    }

    /// A notification was refused.
    func refused() {
        let now = clock.now()
        let isNew = state.withLock { state in
            state.last = now
            defer { state.refused = (state.refused ?? 0) + 1 }
            return state.refused == nil
        }
        if isNew {
            logger.warning(
                "notifications come faster than they can be stored; refusing what is too much: send more slowly, or use a faster disk"
            )
        }
    }

    /// Whether a notification was refused within ``memory``.
    var isPresent: Bool {
        let now = clock.now()
        return state.withLock { state in state.last.map { (.zero..<Self.memory).contains(now - $0) } ?? false }
    }

    /// Tells the operator when it is over.
    func look() {
        let now = clock.now()
        let refused: Int? = state.withLock { state in
            guard let last = state.last, !(.zero..<Self.quiet).contains(now - last) else { return nil }
            defer { state = State() }
            return state.refused
        }
        if let refused {
            logger.notice("notifications are stored as they come again", metadata: ["refused": "\(refused)"])
        }
    }
}

extension PostOffice {
    /// Whether notifications come, or came a moment ago, faster than they can be stored.
    package var isOverloaded: Bool { load.overload.isPresent }

    /// Whether memory and store take a notification for a device.
    func hasRoom(for device: DeviceNumber) -> Bool {
        let hasMemory = !memory.isFull
        if hasMemory, store.isAccepting(for: device) { return true }
        if !hasMemory || store.isOverloaded { load.overload.refused() }
        return false
    }
}

/// The load of the post office: the memory of all notifications, and the reads that are under way.
final class PostOfficeLoad: Sendable {
    let memory: EnvelopeMemory
    let overload: Overload
    let reads = Atomic<Int>(0)

    init(_ memory: EnvelopeMemory, _ overload: Overload) {
        self.memory = memory
        self.overload = overload
    }
}
