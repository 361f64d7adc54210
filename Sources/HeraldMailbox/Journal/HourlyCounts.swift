package import HeraldModel

/// Content of one count of journal lines: the lines of an hour that are equal in all of this.
package struct TallyKey: Hashable, Sendable {
    /// Hours since 1970.
    package let hour: Int64
    package let app: TallyApp
    package let traits: JournalTraits
    package let state: JournalState

    package init(hour: Int64, app: TallyApp, traits: JournalTraits, state: JournalState) {
        self.hour = hour
        self.app = app
        self.traits = traits
        self.state = state
    }

    package init(_ event: JournalEvent) {
        hour = TallyKey.hour(of: event.time)
        app = TallyApp(event)
        traits = event.traits
        state = event.state
    }

    /// The hour of a moment.
    package static func hour(of moment: WallTime) -> Int64 {
        let (hours, rest) = moment.seconds.quotientAndRemainder(dividingBy: 3600)
        return rest < 0 ? hours - 1 : hours
    }
}

/// The app of counted lines.
package enum TallyApp: Hashable, Sendable {
    case app(AppNumber)
    /// Refused requests of which there was no app.
    case none(PushEnvironment)

    package init(_ event: JournalEvent) {
        if event.app == JournalRefusal.noApp, let refusal = event.refusal {
            self = .none(refusal.environment)
        } else {
            self = .app(event.app)
        }
    }
}

/// Numbers of journal lines by ``TallyKey``.
///
/// Lines of one state are mostly equal to the line of this state before, so a run of them costs one change of the
/// dictionary.
package struct HourlyCounts: Sendable {
    private struct Run {
        var key: TallyKey
        var count: Int
    }

    private var finished: [TallyKey: Int] = [:]
    /// The last key of each state.
    private var runs: [Run?] = Array(repeating: nil, count: 64)
    package private(set) var isEmpty = true

    package init() {}

    package mutating func count(_ event: JournalEvent) {
        isEmpty = false
        let key = TallyKey(event)
        let index = Int(event.state.rawValue & 63)
        if runs[index]?.key == key {
            runs[index]?.count += 1
        } else {
            if let run = runs[index] { finished[run.key, default: 0] += run.count }
            runs[index] = Run(key: key, count: 1)
        }
    }

    package mutating func add(_ other: HourlyCounts) {
        guard !other.isEmpty else { return }
        isEmpty = false
        for (key, count) in other.finished { finished[key, default: 0] += count }
        for case let run? in other.runs { finished[run.key, default: 0] += run.count }
    }

    package mutating func clear() {
        guard !isEmpty else { return }
        finished.removeAll(keepingCapacity: true)
        for index in runs.indices { runs[index] = nil }
        isEmpty = true
    }

    /// All numbers.
    package var counts: [TallyKey: Int] {
        var all = HourlyCounts()
        all.add(self)
        return all.finished
    }

    /// At least the number of different keys.
    package var keyCount: Int { finished.count + runs.count }
}
