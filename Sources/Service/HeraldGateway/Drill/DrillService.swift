import CoreMetrics
import HeraldMailbox
package import HeraldModel
package import Logging
package import NIOCore
import Synchronization

/// The state of a drill, for operators.
package struct DrillReport: Sendable {
    package let id: Int
    package let drill: Drill
    /// Whether the configuration started it, not an operator's command.
    package let isConfigured: Bool
    package let started: WallTime
    package let ends: WallTime
    /// The shorter of the times by the two clocks.
    package let remaining: Duration
    /// The number of requests that it has hit.
    package let hits: Int
}

/// The drills of a running service: operators start and stop them, provider connections apply them.
///
/// 1. Holds the ``ActiveDrills``, which decide.
/// 2. Logs when a drill starts and ends, and once a minute while it is active.
/// 3. Persists nothing: drills end with the process.
package final class DrillService: Sendable {
    private struct State {
        var drills = ActiveDrills()
        var payloads = PayloadDrillCounts()
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

    /// Moving the clock moves the end of drills; `uptime` is the machine's monotonic clock.
    ///
    /// The logger gets a warning for each start and end, and never a token.
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

    // MARK: - Operators

    /// Starts a drill; `id` is the number that a cluster has given it, nil for the next one.
    ///
    /// `age` is the time since a cluster started it. With `isConfigured`, the configuration starts it, not an
    /// operator's command.
    /// - Returns: nil if the maximum number is active, or a drill of the number.
    package func start(
        _ drill: Drill,
        id: Int? = nil,
        age: Duration = .zero,
        isConfigured: Bool = false
    ) -> DrillReport? {
        tick()
        let now = moment
        let began = DrillMoment(wall: now.wall - age, uptime: now.uptime - TimeAmount(age))
        let report = state.withLock { state -> DrillReport? in
            guard let entry = state.drills.start(drill, id: id, isConfigured: isConfigured, now: began) else {
                return nil
            }
            if state.nextReminder == nil { state.nextReminder = now.uptime + TimeAmount(DrillLimits.reminder) }
            update(state)
            return DrillReport(entry, now)
        }
        if let report { log("drill begins", report) }
        return report
    }

    /// Gives a lease its whole time again; `age` is the time since the renewal, which another node may have made.
    /// - Returns: nil if no lease with that number is active.
    package func renew(_ id: Int, age: Duration = .zero) -> DrillReport? {
        tick()
        let now = moment
        let renewed = DrillMoment(wall: now.wall - age, uptime: now.uptime - TimeAmount(age))
        return state.withLock { $0.drills.renew(id, now: renewed) }.map { DrillReport($0, now) }
    }

    /// Stops a drill.
    /// - Returns: nil if there is no active drill with that number.
    package func stop(_ id: Int) -> DrillReport? {
        tick()
        return end("drill stopped") { $0.id == id }.first
    }

    /// Stops all drills, or those that the configuration started.
    package func stopAll(onlyConfigured: Bool = false) -> [DrillReport] {
        tick()
        return end("drill stopped") { $0.isConfigured || !onlyConfigured }
    }

    /// The active drills, oldest first.
    package var reports: [DrillReport] {
        tick()
        let now = moment
        return state.withLock { $0.drills.entries.map { DrillReport($0, now) } }
    }

    /// Whether payloads may request drills (``PayloadDrill``).
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
                ? "payloads may request drills: not for production" : "payloads may no longer request drills"
            logger.warning(message)
        }
    }

    /// Calls ``tick()`` once a second.
    package func run() async {
        while !Task.isCancelled {
            do { try await Task.sleep(for: .seconds(1)) } catch { return }
            tick()
        }
    }

    // MARK: - Connections

    /// Whether any drill is possible: one atomic load on the path of every notification.
    var isOn: Bool { flags.load(ordering: .relaxed) != 0 }

    /// The effect of the drills on a request that would be accepted; nil for none.
    func judge(_ subject: DrillSubject) -> DrillVerdict? {
        let now = moment
        guard let (verdict, hits) = state.withLock({ $0.drills.judge(subject, now: now) }) else { return nil }
        for kind in hits { drilled[kind]?.increment() }
        return verdict
    }

    /// Whether the drill of a payload hits a notification; counts it if so.
    func performs(_ verdict: DrillVerdict, of notification: Notification) -> Bool {
        if let first = verdict.first {
            guard state.withLock({ $0.payloads.take(notification.slot, notification.payload, first: first) }) else {
                return false
            }
        }
        drilled["payload"]?.increment()
        return true
    }

    /// The number of streams to announce; nil for the usual number.
    var streams: Int? {
        guard flags.load(ordering: .relaxed) & Self.areOn != 0 else { return nil }
        let now = moment
        return state.withLock { $0.drills.streams(at: now) }
    }

    // MARK: - Time

    /// Ends drills that are over, and logs the active ones once a minute.
    func tick() {
        guard flags.load(ordering: .relaxed) & Self.areOn != 0 else { return }
        let now = moment
        _ = end("drill ends") { $0.isOver(at: now) }
        let reminders = state.withLock { state -> [DrillReport] in
            guard let next = state.nextReminder, next <= now.uptime else { return [] }
            state.nextReminder = now.uptime + TimeAmount(DrillLimits.reminder)
            return state.drills.entries.map { DrillReport($0, now) }
        }
        for report in reminders { log("drill is active", report) }
    }

    private func end(_ message: Logger.Message, _ matches: (ActiveDrills.Entry) -> Bool) -> [DrillReport] {
        let now = moment
        let ended = state.withLock { state in
            let ended = state.drills.stop(where: matches)
            if state.drills.entries.isEmpty { state.nextReminder = nil }
            update(state)
            return ended.map { DrillReport($0, now) }
        }
        for report in ended { log(message, report) }
        return ended
    }

    private func update(_ state: State) {
        if state.drills.entries.isEmpty {
            flags.bitwiseAnd(~Self.areOn, ordering: .relaxed)
        } else {
            flags.bitwiseOr(Self.areOn, ordering: .relaxed)
        }
        active.record(state.drills.entries.count)
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
    init(_ entry: ActiveDrills.Entry, _ now: DrillMoment) {
        let remaining = entry.remaining(at: now)
        self.init(
            id: entry.id,
            drill: entry.drill,
            isConfigured: entry.isConfigured,
            started: entry.began.wall,
            ends: entry.drill.isLease ? now.wall + remaining : entry.renewed.wall + entry.drill.duration,
            remaining: remaining,
            hits: entry.hits
        )
    }
}
