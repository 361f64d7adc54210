package import HeraldModel

/// Stops marking tokens dead when far more of them die than usual: that is a wrong environment or a wrong credential, say,
/// and not that many people who removed the app on the same afternoon.
///
/// Of each app it knows, over a sliding window, how many answers there were and how many of them were deaths; and what is
/// usual, from all windows before. It has no clock.
package struct DeathBrake: Sendable {
    package struct Limits: Sendable, Hashable {
        /// How much of the past is one window.
        package var window: Duration = .seconds(600)
        /// So many deaths in a window are always let through.
        package var allowance = 20
        /// The share of deaths among answers that is let through whatever is usual.
        package var share = 0.1
        /// How many times the usual share is let through.
        package var factor = 3.0

        package init() {}
    }

    /// Why the brake was put on.
    package struct Alarm: Hashable, Sendable {
        package let app: String
        package let deaths: Int
        package let answers: Int
        package let since: WallTime

        /// The app's topic.
        package var topic: String { String(app.prefix { $0 != " " }) }

        package init(app: String, deaths: Int, answers: Int, since: WallTime) {
            self.app = app
            self.deaths = deaths
            self.answers = answers
            self.since = since
        }

        /// What is the matter and what to do.
        package var words: String {
            "\(deaths) of \(answers) tokens of \(app) came back dead, far more than usual: none is marked dead any more "
                + "since \(since.rfc3339). Check its environment and its credential; then `herald relay revive --topic "
                + "\(topic)` undoes what was marked and takes the brake off"
        }
    }

    private struct Record {
        var slices: [(start: WallTime, answers: Int, deaths: Int)] = []
        /// The usual share of deaths, and how many answers it comes from, of late more than of old.
        var usualAnswers = 0.0
        var usualDeaths = 0.0
        var alarm: Alarm?
        /// Whether the alarm is in the database, from where only an operator takes it.
        var isKept = false
    }

    /// The most apps that are told apart; it knows no more of others.
    private static let maximumApps = 10_000

    private let limits: Limits
    private var records: [String: Record] = [:]

    package init(_ limits: Limits = Limits()) {
        self.limits = limits
    }

    /// The brakes that are on.
    package var alarms: [Alarm] { records.values.compactMap(\.alarm).sorted { $0.app < $1.app } }

    /// The brakes that are on, and are in the database as far as is known here.
    package var kept: [Alarm] { records.values.filter(\.isKept).compactMap(\.alarm) }

    /// The brakes that are on and still have to be written into the database.
    package var unkept: [Alarm] { records.values.filter { !$0.isKept }.compactMap(\.alarm) }

    /// A brake is in the database now.
    package mutating func isKept(_ alarm: Alarm) {
        if records[alarm.app]?.alarm == alarm { records[alarm.app]?.isKept = true }
    }

    /// Does as the database says: brakes that were put on before this relay was started, or by another; and those that an
    /// operator took off.
    /// - Parameters:
    ///   - found: What is in the database.
    ///   - known: ``kept`` as it was before that was read.
    /// - Returns: What changed by it.
    package mutating func follow(_ found: [Alarm], known: [Alarm]) -> (on: [Alarm], off: [Alarm]) {
        var (on, off): ([Alarm], [Alarm]) = ([], [])
        for alarm in found {
            let isOn = records[alarm.app]?.alarm != nil
            var record = records[alarm.app] ?? Record()
            record.alarm = alarm
            record.isKept = true
            records[alarm.app] = record
            if !isOn { on.append(alarm) }
        }
        let apps = Set(found.map(\.app))
        for alarm in known where !apps.contains(alarm.app) {
            // What is usual stays; what put the brake on is the past.
            records[alarm.app]?.alarm = nil
            records[alarm.app]?.isKept = false
            records[alarm.app]?.slices = []
            off.append(alarm)
        }
        return (on, off)
    }

    /// Takes note of answers.
    /// - Parameters:
    ///   - app: Whose.
    ///   - answers: How many there were, deaths included.
    ///   - deaths: How many of them said that a token is dead.
    ///   - now: The moment.
    /// - Returns: Whether the deaths may be marked; and the alarm, if it is new.
    package mutating func note(
        app: String,
        answers: Int,
        deaths: Int,
        at now: WallTime
    ) -> (mayMark: Bool, alarm: Alarm?) {
        guard records[app] != nil || records.count < DeathBrake.maximumApps else { return (true, nil) }
        var record = records[app] ?? Record()
        defer { records[app] = record }
        age(&record, at: now)
        let slice = limits.window / 10
        if let last = record.slices.last, now < last.start + slice, now >= last.start {
            record.slices[record.slices.count - 1].answers += answers
            record.slices[record.slices.count - 1].deaths += deaths
        } else {
            record.slices.append((now, answers, deaths))
        }
        if record.alarm != nil { return (false, nil) }
        let total = record.slices.reduce((0, 0)) { ($0.0 + $1.answers, $0.1 + $1.deaths) }
        // Of few answers the usual share says nothing.
        let usual = record.usualAnswers >= 100 ? record.usualDeaths / record.usualAnswers : 0
        let allowed = max(
            Double(limits.allowance),
            Double(total.0) * min(max(limits.share, usual * limits.factor), 0.9)
        )
        guard deaths > 0, Double(total.1) > allowed else { return (true, nil) }
        let alarm = Alarm(app: app, deaths: total.1, answers: total.0, since: now)
        record.alarm = alarm
        record.isKept = false
        return (false, alarm)
    }

    /// Moves what is older than the window to what is usual.
    private func age(_ record: inout Record, at now: WallTime) {
        while let first = record.slices.first, first.start + limits.window <= now || first.start > now {
            // Each slice takes a hundredth of the weight of the past away.
            record.usualAnswers = record.usualAnswers * 0.99 + Double(first.answers)
            record.usualDeaths = record.usualDeaths * 0.99 + Double(first.deaths)
            record.slices.removeFirst()
        }
    }
}
