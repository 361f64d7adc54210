import Synchronization

/// Limits the memory of unfinished request bodies, over all connections of a gateway.
///
/// A session reserves memory at the end of a read burst, and only beyond one body. So requests that arrive whole, or that
/// are interrupted once, are neither counted nor refused.
final class BodyMemory: Sendable {
    private let bytes = Atomic<Int>(0)
    private let limit: Int

    init(limit: Int) {
        self.limit = limit
    }

    /// Reserved bytes.
    var current: Int { bytes.load(ordering: .relaxed) }

    /// Reserves bytes; callable from any thread.
    /// - Returns: false if that would exceed the limit; nothing is reserved then.
    func reserve(_ count: Int) -> Bool {
        guard bytes.wrappingAdd(count, ordering: .relaxed).newValue <= limit else {
            release(count)
            return false
        }
        return true
    }

    func release(_ count: Int) {
        bytes.wrappingSubtract(count, ordering: .relaxed)
    }
}

/// One session's share of a ``BodyMemory``.
struct BodyReservation {
    private let memory: BodyMemory
    /// Bytes that need no reservation.
    private let free: Int
    /// Bytes that the session's unfinished bodies occupy.
    var held = 0
    private var reserved = 0

    init(memory: BodyMemory, free: Int) {
        self.memory = memory
        self.free = free
    }

    /// Adapts the reservation to what is held.
    /// - Returns: false if there is no memory left: the session must drop its unfinished bodies.
    mutating func update() -> Bool {
        let wanted = max(0, held - free)
        if wanted > reserved {
            guard memory.reserve(wanted - reserved) else { return false }
        } else if wanted < reserved {
            memory.release(reserved - wanted)
        }
        reserved = wanted
        return true
    }

    /// Releases everything.
    mutating func clear() {
        held = 0
        memory.release(reserved)
        reserved = 0
    }
}
