import CoreMetrics
import HeraldMailbox
package import HeraldModel
package import Logging
package import NIOCore
import Synchronization

/// A drill that is on, or was until now, as operators see it.
package struct DrillReport: Sendable {
    package let id: Int
    package let drill: Drill
    /// Whether it is from the configuration, and not from an operator's command.
    package let isConfigured: Bool
    package let started: WallTime
    package let ends: WallTime
    /// By whichever clock is first.
    package let remaining: Duration
    /// How many requests it has hit.
    package let hits: Int
}

/// The drills of a running service: started and stopped by operators, asked by every provider connection.
///
/// 1. Keeps the ``DrillBook``, which decides.
/// 2. Says in the log when a drill begins and ends, and each minute that one is on.
/// 3. Keeps nothing: drills end with the process.
package final class DrillDesk: Sendable {
    private struct State {
        var book = DrillBook()
        var nextReminder: NIODeadline?
    }

    private static let areOn: UInt8 = 1
    private static let takesPayloads: UInt8 = 2

    private let clock: any WallClock
    private let logger: Logger
    private let uptime: @Sendable () -> NIODeadline
    private let flags: Atomic<UInt8>
    private let state = Mutex(State())
    private let active = Gauge(label: MetricName.drillsActive)
    private let allowed = Gauge(label: MetricName.payloadDrillsAllowed)
    private let drilled: [String: Counter]

    /// - Parameters:
    ///   - clock: The service's clock: a test that moves it moves the ends of drills.
    ///   - logger: Gets a warning for each begin and end, and never a token.
    ///   - uptime: The machine's clock, which no operator moves.
    package init(clock: any WallClock, logger: Logger, uptime: @escaping @Sendable () -> NIODeadline = { .now() }) {
        self.clock = clock
        self.logger = logger
        self.uptime = uptime
        flags = Atomic(0)
        drilled = Dictionary(
            uniqueKeysWithValues: (Drill.Kind.names + ["payload"]).map { name in
                (name, Counter(label: MetricName.drilledRequests, dimensions: [("kind", name)]))
            }
        )
    }

    // For operators.

    /// Begins a drill.
    /// - Returns: nil if too many are on.
    package func start(_ drill: Drill, isConfigured: Bool = false) -> DrillReport? {
        tick()
        let now = moment
        let report = state.withLock { state -> DrillReport? in
            guard let entry = state.book.start(drill, isConfigured: isConfigured, now: now) else { return nil }
            if state.nextReminder == nil { state.nextReminder = now.uptime + TimeAmount(DrillLimits.reminder) }
            update(state)
            return DrillReport(entry, now)
        }
        if let report { log("drill begins", report) }
        return report
    }

    /// Ends a drill.
    /// - Returns: nil if no drill of that number is on.
    package func stop(_ id: Int) -> DrillReport? {
        tick()
        return end("drill stopped") { $0.id == id }.first
    }

    /// Ends all drills, or all that the configuration began.
    package func stopAll(onlyConfigured: Bool = false) -> [DrillReport] {
        tick()
        return end("drill stopped") { $0.isConfigured || !onlyConfigured }
    }

    /// The drills that are on, oldest first.
    package var reports: [DrillReport] {
        tick()
        let now = moment
        return state.withLock { $0.book.entries.map { DrillReport($0, now) } }
    }

    /// Whether a notification may say in its payload what is to become of it.
    package var allowsPayloadDrills: Bool {
        get { flags.load(ordering: .relaxed) & Self.takesPayloads != 0 }
        set {
            let before = allowsPayloadDrills
            if newValue {
                flags.bitwiseOr(Self.takesPayloads, ordering: .relaxed)
            } else {
                flags.bitwiseAnd(~Self.takesPayloads, ordering: .relaxed)
            }
            allowed.record(newValue ? 1 : 0)
            guard newValue != before else { return }
            let message: Logger.Message =
                newValue
                ? "payloads may ask for drills: not for production" : "payloads may ask for drills no longer"
            logger.warning(message)
        }
    }

    /// Ends what is over, and reminds of what is on; once a second.
    package func run() async {
        while !Task.isCancelled {
            do { try await Task.sleep(for: .seconds(1)) } catch { return }
            tick()
        }
    }

    // For connections.

    /// Whether there is anything to ask for: one load, with nothing on.
    var isOn: Bool { flags.load(ordering: .relaxed) != 0 }

    /// What drills do to a request that would be accepted; nil if nothing.
    func judge(_ subject: DrillSubject) -> DrillVerdict? {
        let now = moment
        guard let (verdict, hits) = state.withLock({ $0.book.judge(subject, now: now) }) else { return nil }
        for kind in hits { drilled[kind]?.increment() }
        return verdict
    }

    /// A payload asked for what became of it.
    func countPayloadDrill() {
        drilled["payload"]?.increment()
    }

    /// How many streams are welcome; nil for the usual number.
    var streams: Int? {
        guard flags.load(ordering: .relaxed) & Self.areOn != 0 else { return nil }
        let now = moment
        return state.withLock { $0.book.streams(at: now) }
    }

    // What happens with time.

    /// Ends what is over, and reminds of what is on.
    func tick() {
        guard flags.load(ordering: .relaxed) & Self.areOn != 0 else { return }
        let now = moment
        _ = end("drill ends") { $0.isOver(at: now) }
        let reminders = state.withLock { state -> [DrillReport] in
            guard let next = state.nextReminder, next <= now.uptime else { return [] }
            state.nextReminder = now.uptime + TimeAmount(DrillLimits.reminder)
            return state.book.entries.map { DrillReport($0, now) }
        }
        for report in reminders { log("drill is on", report) }
    }

    private func end(_ message: Logger.Message, _ matches: (DrillBook.Entry) -> Bool) -> [DrillReport] {
        let now = moment
        let ended = state.withLock { state in
            let ended = state.book.stop(where: matches)
            if state.book.entries.isEmpty { state.nextReminder = nil }
            update(state)
            return ended.map { DrillReport($0, now) }
        }
        for report in ended { log(message, report) }
        return ended
    }

    private func update(_ state: State) {
        if state.book.entries.isEmpty {
            flags.bitwiseAnd(~Self.areOn, ordering: .relaxed)
        } else {
            flags.bitwiseOr(Self.areOn, ordering: .relaxed)
        }
        active.record(state.book.entries.count)
    }

    private var moment: DrillMoment { DrillMoment(wall: clock.now(), uptime: uptime()) }

    private func log(_ message: Logger.Message, _ report: DrillReport) {
        logger.warning(
            message,
            metadata: [
                "drill": "\(report.id)", "what": "\(report.drill)", "seed": "\(report.drill.seed)",
                "until": "\(report.ends.rfc3339)", "hits": "\(report.hits)",
                "from": report.isConfigured ? "configuration" : "operator",
            ]
        )
    }
}

extension DrillReport {
    init(_ entry: DrillBook.Entry, _ now: DrillMoment) {
        let byUptime = entry.drill.duration - .nanoseconds((now.uptime - entry.began.uptime).nanoseconds)
        self.init(
            id: entry.id,
            drill: entry.drill,
            isConfigured: entry.isConfigured,
            started: entry.began.wall,
            ends: entry.ends,
            remaining: max(.zero, min(byUptime, entry.ends - now.wall)),
            hits: entry.hits
        )
    }
}
