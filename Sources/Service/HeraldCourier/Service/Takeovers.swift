import CoreMetrics
import HeraldMailbox
import HeraldModel
import HeraldTrust
import Logging
import Synchronization

/// Takeover: a newer connection of a device replaces the older one (MQTT 5 §3.1.4, 3.1.1 §3.1.4).
///
/// 1. CONNECT of a device that is connected already counts as a takeover; past a limit ``permits(_:isHeldElsewhere:)`` refuses it.
/// 2. The registry gives the newer connection a fence, a number that rises with each connection of the device;
///    ``admitted(_:fence:)`` notes it as the device's newest.
/// 3. The post office attaches the newer connection and dismisses the older one: the higher fence wins
///    (`DeliveryShard.attach`). Whatever the older connection reports afterwards carries an old fence and is ignored, and
///    whatever it asks of the registry is refused (``isOvertaken(_:fence:)``).
/// 4. The older connection leaves its unacknowledged notifications here with ``remember(_:of:)``, and closes with
///    DISCONNECT 0x8E. The newer one sends them again, as duplicates, from ``takeUnacknowledged(of:)``.
/// 5. When the older connection is gone, ``closed(_:fence:)`` says that it was not the newest. The stored session belongs
///    to the newer one then, and stays as it is.
final class Takeovers: Sendable {
    private struct State {
        var limiter: TakeoverLimiter
        /// The newest connection of each device that is connected.
        var fences: [DeviceID: UInt64] = [:]
        var unacknowledged: [DeviceNumber: [UnacknowledgedNotification]] = [:]
        var unacknowledgedCount = 0
    }

    private let state: Mutex<State>
    private let rememberedLimit: Int
    private let counter = Counter(label: MetricName.deviceTakeovers)
    private let logger: Logger

    init(_ configuration: CourierConfiguration, logger: Logger) {
        state = Mutex(State(limiter: TakeoverLimiter(limit: configuration.takeoversPerMinute)))
        rememberedLimit = configuration.rememberedDuplicates
        self.logger = logger
    }

    /// Decides whether a device may connect now.
    ///
    /// `isHeldElsewhere` says whether it is connected to another node of the cluster. Each node counts the takeovers
    /// that end at it.
    /// - Returns: Whether it is not connected, or has not taken over from itself too often.
    func permits(_ identity: DeviceIdentity, isHeldElsewhere: Bool) -> Bool {
        let decision = state.withLock { state in
            state.fences[identity.id] == nil && !isHeldElsewhere ? nil : state.limiter.takesOver(identity.id, now: .now)
        }
        switch decision {
        case nil: return true
        case .permitted:
            counter.increment()
            return true
        case .refused(let isFirst):
            if isFirst {
                logger.warning(
                    "two connections with one device certificate keep replacing each other; revoke it and enroll each device",
                    metadata: ["device": "\(identity.id)", "serial": "\(identity.serial)"]
                )
            }
            return false
        }
    }

    /// Notes the newest connection of a device.
    func admitted(_ device: DeviceID, fence: UInt64) {
        state.withLock { $0.fences[device] = fence }
    }

    /// Whether a device has a newer connection than this one.
    func isOvertaken(_ device: DeviceID, fence: UInt64) -> Bool {
        state.withLock { $0.fences[device] ?? 0 } > fence
    }

    /// Forgets a connection that is gone.
    /// - Returns: Whether it was the device's newest.
    func closed(_ device: DeviceID, fence: UInt64) -> Bool {
        state.withLock { state in
            guard state.fences[device] == fence else { return false }
            state.fences[device] = nil
            return true
        }
    }

    /// Remembers what a device that keeps its session has not acknowledged; nothing past the limit.
    func remember(_ notifications: [UnacknowledgedNotification], of device: DeviceNumber) {
        guard !notifications.isEmpty else { return }
        state.withLock { state in
            guard state.unacknowledgedCount + notifications.count <= rememberedLimit,
                state.unacknowledged[device] == nil
            else { return }
            state.unacknowledged[device] = notifications
            state.unacknowledgedCount += notifications.count
        }
    }

    /// Returns what was remembered of a device, and forgets it.
    func takeUnacknowledged(of device: DeviceNumber) -> [UnacknowledgedNotification] {
        state.withLock { state in
            guard let notifications = state.unacknowledged.removeValue(forKey: device) else { return [] }
            state.unacknowledgedCount -= notifications.count
            return notifications
        }
    }
}

/// Limits how often a device takes over from itself.
///
/// Two copies of one certificate take over from each other without end, and the device gets its notifications now here,
/// now there. Past the limit the newer connection is refused until a minute after the first of those takeovers. The older
/// one stays, so one of the two works.
/// Apart from `RateLimit`, which would let a takeover through every few seconds.
struct TakeoverLimiter {
    enum Decision: Hashable {
        case permitted
        /// The log says so once for each such minute.
        case refused(isFirst: Bool)
    }

    private struct Minute {
        let began: ContinuousClock.Instant
        var takeovers: Int
        var hasReported = false
    }

    private var minutes: [DeviceID: Minute] = [:]
    private var nextCleaning: ContinuousClock.Instant?
    private let limit: Int

    /// - Parameter limit: Takeovers of one device within a minute.
    init(limit: Int) {
        self.limit = limit
    }

    mutating func takesOver(_ device: DeviceID, now: ContinuousClock.Instant) -> Decision {
        clean(now)
        guard var minute = minutes[device], minute.began.duration(to: now) < .seconds(60) else {
            minutes[device] = Minute(began: now, takeovers: 1)
            return .permitted
        }
        defer { minutes[device] = minute }
        guard minute.takeovers >= limit else {
            minute.takeovers += 1
            return .permitted
        }
        defer { minute.hasReported = true }
        return .refused(isFirst: !minute.hasReported)
    }

    /// Forgets the minutes that are over, once a minute: the table never holds more than two minutes' devices.
    private mutating func clean(_ now: ContinuousClock.Instant) {
        guard let due = nextCleaning else {
            nextCleaning = now + .seconds(60)
            return
        }
        guard now >= due else { return }
        minutes = minutes.filter { $0.value.began.duration(to: now) < .seconds(60) }
        nextCleaning = now + .seconds(60)
    }
}
