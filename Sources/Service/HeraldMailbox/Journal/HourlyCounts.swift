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
    /// Equal lines of one state; none yet if ``count`` is 0.
    private struct Run {
        static let none = Run()

        private(set) var key = TallyKey(hour: 0, app: .none(.production), traits: .none, state: .received)
        var count = 0
        private var app: UInt32 = 0
        private var traits = JournalTraits.none.rawValue
        /// The beginning of the hour, in milliseconds.
        private var start: Int64 = 0
        /// Milliseconds from there; 0 if the beginning is before all times.
        private var length: UInt64 = 0

        private init() {}

        init(_ event: JournalEvent) {
            key = TallyKey(event)
            count = 1
            app = event.app.value
            traits = event.traits.rawValue
            let (product, overflow) = key.hour.multipliedReportingOverflow(by: 3_600_000)
            (start, length) = (product, overflow ? 0 : 3_600_000)
        }

        /// Whether an event has this key; without the divisions that make one.
        func hasKey(of event: JournalEvent) -> Bool {
            let time = event.time.milliseconds
            return count > 0 && time >= start && UInt64(bitPattern: time &- start) < length && app == event.app.value
                && traits == event.traits.rawValue && (app != 0 || key.app == TallyApp(event))
        }
    }

    private var finished: [TallyKey: Int] = [:]
    /// The last lines of each state.
    private var runs: [Run] = Array(repeating: .none, count: 64)
    package private(set) var isEmpty = true

    package init() {}

    package mutating func count(_ event: JournalEvent) {
        let index = Int(event.state.rawValue & 63)
        let isSame = runs.withUnsafeMutableBufferPointer { runs in
            guard runs[index].hasKey(of: event) else { return false }
            runs[index].count += 1
            return true
        }
        guard !isSame else { return }
        finish(runs[index])
        runs[index] = Run(event)
        isEmpty = false
    }

    package mutating func add(_ other: HourlyCounts) {
        guard !other.isEmpty else { return }
        isEmpty = false
        for (key, count) in other.finished { finished[key, default: 0] += count }
        for run in other.runs { finish(run) }
    }

    private mutating func finish(_ run: Run) {
        if run.count > 0 { finished[run.key, default: 0] += run.count }
    }

    package mutating func clear() {
        guard !isEmpty else { return }
        finished.removeAll(keepingCapacity: true)
        for index in runs.indices { runs[index] = .none }
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
