package import HeraldModel

/// Circuit breakers that suspend the marking of dead tokens: opens if far more tokens of an app die than usual, which
/// points to a wrong environment or credential and not to users.
///
/// It compares the answers and dead tokens in a sliding window with the usual share from earlier windows. It has no clock.
package struct DeadTokenBreaker: Sendable {
    package struct Limits: Sendable, Hashable {
        /// Length of the window.
        package var window: Duration = .seconds(600)
        /// Number of dead tokens in a window that never opens it.
        package var allowance = 20
        /// Share of dead tokens among answers that never opens it.
        package var share = 0.1
        /// Multiple of the usual share that never opens it.
        package var factor = 3.0
    }

    /// An open breaker.
    package struct Trip: Hashable, Sendable, CustomStringConvertible {
        package let app: String
        package let deadTokens: Int
        package let answers: Int
        package let since: WallTime

        /// The app's topic.
        package var topic: String { String(app.prefix { $0 != " " }) }

        /// The problem and its remedy.
        package var description: String {
            "\(deadTokens) of \(answers) tokens of \(app) were reported dead, far more than usual: marking is suspended since "
                + "\(since.rfc3339). Check its environment and its credential; then `herald relay revive --topic "
                + "\(topic)` makes the tokens alive again and resumes marking"
        }
    }

    private struct Record {
        var slices: [(start: WallTime, answers: Int, deadTokens: Int)] = []
        /// Weighted number of answers before the window, and of dead tokens among them; recent ones weigh more.
        var usualAnswers = 0.0
        var usualDeadTokens = 0.0
        var trip: Trip?
        /// Whether the database keeps the trip, which then only an operator resets.
        var isStored = false
    }

    /// Maximum number of apps; it ignores others.
    private static let maximumApps = 10_000

    private let limits: Limits
    private var records: [String: Record] = [:]

    package init(_ limits: Limits = Limits()) {
        self.limits = limits
    }

    /// Open breakers.
    package var trips: [Trip] { records.values.compactMap(\.trip).sorted { $0.app < $1.app } }

    /// Open breakers that the database is known to keep.
    package var stored: [Trip] { records.values.filter(\.isStored).compactMap(\.trip) }

    /// Open breakers that the database does not keep yet.
    package var unstored: [Trip] { records.values.filter { !$0.isStored }.compactMap(\.trip) }

    /// Notes that the database keeps a trip.
    package mutating func didStore(_ trip: Trip) {
        if records[trip.app]?.trip == trip { records[trip.app]?.isStored = true }
    }

    /// Adopts the state of the database: breakers that other relays opened, and those that an operator reset.
    ///
    /// `known` is ``stored`` before `found` was read.
    package mutating func reconcile(_ found: [Trip], known: [Trip]) -> (opened: [Trip], reset: [Trip]) {
        var (opened, reset): ([Trip], [Trip]) = ([], [])
        for trip in found {
            if records[trip.app]?.trip == nil { opened.append(trip) }
            records[trip.app, default: Record()].trip = trip
            records[trip.app]?.isStored = true
        }
        let apps = Set(found.map(\.app))
        for trip in known where !apps.contains(trip.app) {
            // The usual share stays; the window that opened it is forgotten.
            records[trip.app]?.trip = nil
            records[trip.app]?.isStored = false
            records[trip.app]?.slices = []
            reset.append(trip)
        }
        return (opened, reset)
    }

    /// Counts answers, of which `deadTokens` reported a dead token.
    /// - Returns: Whether the tokens may be marked, and the trip if the breaker opened now.
    package mutating func note(
        app: String,
        answers: Int,
        deadTokens: Int,
        at now: WallTime
    ) -> (mayMark: Bool, trip: Trip?) {
        guard records.count < DeadTokenBreaker.maximumApps || records[app] != nil else { return (true, nil) }
        let answers = (all: answers, dead: deadTokens)
        return Self.note(answers, in: &records[app, default: Record()], of: app, limits, at: now)
    }

    private static func note(
        _ answers: (all: Int, dead: Int),
        in record: inout Record,
        of app: String,
        _ limits: Limits,
        at now: WallTime
    ) -> (mayMark: Bool, trip: Trip?) {
        age(&record, limits.window, at: now)
        let slice = limits.window / 10
        if let last = record.slices.last, now < last.start + slice, now >= last.start {
            record.slices[record.slices.count - 1].answers += answers.all
            record.slices[record.slices.count - 1].deadTokens += answers.dead
        } else {
            record.slices.append((now, answers.all, answers.dead))
        }
        if record.trip != nil { return (false, nil) }
        guard answers.dead > 0 else { return (true, nil) }
        let total = record.slices.reduce((0, 0)) { ($0.0 + $1.answers, $0.1 + $1.deadTokens) }
        // Few answers say nothing about the usual share.
        let usual = record.usualAnswers >= 100 ? record.usualDeadTokens / record.usualAnswers : 0
        let allowed = max(
            Double(limits.allowance),
            Double(total.0) * min(max(limits.share, usual * limits.factor), 0.9)
        )
        guard Double(total.1) > allowed else { return (true, nil) }
        let trip = Trip(app: app, deadTokens: total.1, answers: total.0, since: now)
        record.trip = trip
        record.isStored = false
        return (false, trip)
    }

    /// Moves slices that are older than the window to the usual share.
    private static func age(_ record: inout Record, _ window: Duration, at now: WallTime) {
        while let first = record.slices.first, first.start + window <= now || first.start > now {
            // Each slice reduces the weight of the past by a hundredth.
            record.usualAnswers = record.usualAnswers * 0.99 + Double(first.answers)
            record.usualDeadTokens = record.usualDeadTokens * 0.99 + Double(first.deadTokens)
            record.slices.removeFirst()
        }
    }
}
