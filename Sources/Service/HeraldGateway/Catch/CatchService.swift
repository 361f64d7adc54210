import CoreMetrics
import HeraldMailbox
package import HeraldModel
import HeraldTrust
package import Logging
import Synchronization

/// Keeps the payloads of requests for people who test, in the memory of the process only.
///
/// 1. Provider connections hand over a request once its answer is known, if catching is on.
/// 2. The console reads, waits and removes.
/// 3. Logs when catching begins and ends, and once an hour while it is on.
package final class CatchService: Sendable {
    /// The interval of the reminder in the log.
    private static let reminder = Duration.seconds(3600)

    /// The present state of catching.
    package struct State: Hashable, Sendable {
        package let scope: CatchScope
        /// The end of catching; nil if the configuration switched it on.
        package let until: WallTime?
        package let messages: Int
        package let bytes: Int
    }

    private struct Kept {
        var scope = CatchScope.off
        var until: WallTime?
        var nextReminder: WallTime?
        var ring: CaughtRing
        var waiting: [UInt64: AsyncStream<Void>.Continuation] = [:]
        var lastWaiting: UInt64 = 0
        /// Whether the service stops.
        var isOver = false
    }

    package let limits: CatchLimits
    private let clock: any WallClock
    private let logger: Logger
    private let isOn = Atomic(false)
    private let kept: Mutex<Kept>
    private let gauge = Gauge(label: MetricName.catching)

    /// The logger gets a warning for each start and end, and nothing of a message.
    package init(limits: CatchLimits = CatchLimits(), clock: any WallClock, logger: Logger) {
        self.limits = limits
        self.clock = clock
        self.logger = logger
        kept = Mutex(Kept(ring: CaughtRing(limits)))
        gauge.record(0)
    }

    // MARK: - Operators

    /// Catches from now on what `scope` has; without a duration, until the service stops.
    ///
    /// ``CatchScope/off`` also forgets what is kept.
    package func start(_ scope: CatchScope, for duration: Duration? = nil) {
        guard scope != .off else { return stop() }
        let now = clock.now()
        let until = duration.map { now + min($0, limits.age) }
        kept.withLock { kept in
            kept.scope = scope
            kept.until = until
            kept.nextReminder = now + Self.reminder
            isOn.store(true, ordering: .relaxed)
        }
        gauge.record(1)
        log("payloads are caught in memory: not for production")
    }

    /// Ends catching, and forgets what is kept.
    package func stop() {
        let wasOn = end { $0.ring = CaughtRing(limits) }
        if wasOn { log("payloads are no longer caught") }
    }

    package var state: State {
        tick()
        return kept.withLock {
            State(scope: $0.scope, until: $0.until, messages: $0.ring.count, bytes: $0.ring.bytes)
        }
    }

    /// The messages after a number, newest first, and the number of the newest.
    package func messages(after number: UInt64 = 0) -> (messages: [CaughtMessage], last: UInt64) {
        tick()
        return kept.withLock { ($0.ring.newest(after: number), $0.ring.last) }
    }

    /// Removes messages.
    /// - Returns: The number of those removed.
    package func remove(where matches: (CaughtMessage) -> Bool) -> Int {
        kept.withLock { $0.ring.remove(where: matches) }
    }

    /// Yields whenever a message comes, until the stream is dropped.
    /// - Returns: nil if too many wait already, or the service stops.
    package func arrivals() -> AsyncStream<Void>? {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number = kept.withLock { kept -> UInt64? in
            guard kept.waiting.count < limits.waiting, !kept.isOver else { return nil }
            kept.lastWaiting += 1
            kept.waiting[kept.lastWaiting] = continuation
            return kept.lastWaiting
        }
        guard let number else { return nil }
        continuation.onTermination = { [weak self] _ in
            self?.kept.withLock { $0.waiting[number] = nil }
        }
        return stream
    }

    /// Calls ``tick()`` once a second, and ends the waits for messages when the task is cancelled.
    package func run() async {
        while (try? await Task.sleep(for: .seconds(1))) != nil { tick() }
        let waiting = kept.withLock { kept in
            kept.isOver = true
            return Array(kept.waiting.values)
        }
        for continuation in waiting { continuation.finish() }
    }

    // MARK: - Connections

    /// Whether anything is caught: one atomic load on the path of every notification.
    var isCatching: Bool { isOn.load(ordering: .relaxed) }

    /// Whether a request is caught.
    func catches(_ topic: Topic?) -> Bool {
        kept.withLock { kept in
            switch kept.scope {
            case .off: false
            case .all: true
            case .topics(let topics): topic.map { topics.contains(TopicScope.bundle(of: $0)) } ?? false
            }
        }
    }

    /// Keeps a message whose answer is known.
    func keep(_ message: CaughtMessage) {
        let waiting = kept.withLock { kept in
            kept.ring.add(message)
            return Array(kept.waiting.values)
        }
        for continuation in waiting { continuation.yield() }
    }

    // MARK: - Time

    /// Removes what is too old, ends catching whose time is over, and logs once an hour that it is on.
    func tick() {
        let now = clock.now()
        let (isOver, isReminder) = kept.withLock { kept in
            kept.ring.expire(now)
            let isOver = kept.until.map { $0 <= now } ?? false
            guard !isOver, let next = kept.nextReminder, next <= now else { return (isOver, false) }
            kept.nextReminder = now + Self.reminder
            return (false, true)
        }
        if isOver {
            _ = end { _ in }
            log("payloads are no longer caught: the time is over")
        } else if isReminder {
            log("payloads are caught in memory: not for production")
        }
    }

    /// - Returns: Whether catching was on.
    private func end(_ change: (inout Kept) -> Void) -> Bool {
        let wasOn = kept.withLock { kept in
            let wasOn = kept.scope != .off
            kept.scope = .off
            kept.until = nil
            kept.nextReminder = nil
            change(&kept)
            isOn.store(false, ordering: .relaxed)
            return wasOn
        }
        gauge.record(0)
        return wasOn
    }

    private func log(_ message: Logger.Message) {
        let (scope, until, count) = kept.withLock { ($0.scope, $0.until, $0.ring.count) }
        var metadata: Logger.Metadata = ["messages": "\(count)"]
        if scope != .off { metadata["what"] = "\(scope)" }
        if let until { metadata["until"] = "\(until.rfc3339)" }
        logger.warning(message, metadata: metadata)
    }
}
