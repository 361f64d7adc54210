package import HeraldModel
import Synchronization

/// The console's memory of the service's present and recent past.
package final class LiveConsole: Sendable {
    private struct Book {
        var problems = ProblemBook()
        /// Grows with each change.
        var version = 0
        var signs: ServiceStatus.Signs?
        /// Grows with each change of the signs.
        var signsVersion = 0
    }

    package let series: SeriesRecorder
    package let refusals: RefusalBook
    let clock: any WallClock
    /// The lines of the journal as they are written; nil in a console without a journal.
    let lines: (any LineSource)?
    /// The number of the newest message that was caught.
    let newestCaught: @Sendable () -> UInt64
    private let findings: @Sendable () -> [ProblemFinding]
    private let signs: @Sendable () -> ServiceStatus.Signs?
    private let book = Mutex(Book())

    package init(
        series: SeriesRecorder,
        refusals: RefusalBook,
        lines: (any LineSource)? = nil,
        newestCaught: @escaping @Sendable () -> UInt64 = { 0 },
        clock: any WallClock,
        signs: @escaping @Sendable () -> ServiceStatus.Signs? = { nil },
        findings: @escaping @Sendable () -> [ProblemFinding]
    ) {
        self.series = series
        self.refusals = refusals
        self.lines = lines
        self.newestCaught = newestCaught
        self.clock = clock
        self.signs = signs
        self.findings = findings
    }

    /// Looks at the service; for once a second.
    package func look(uptime: Duration) {
        let now = clock.now()
        series.sample(at: now, uptime: uptime)
        let found = findings() + refusals.findings(at: now)
        let signs = signs()
        book.withLock { book in
            if book.signs != signs { book.signsVersion += 1 }
            book.signs = signs
            if book.problems.update(found, at: now.rfc3339) { book.version += 1 }
        }
    }

    /// The problems, and those that are over if they are wanted.
    package func problems(withHistory: Bool) -> [Problem] {
        book.withLock { withHistory ? $0.problems.history : $0.problems.present }
    }

    /// The present problems, if they changed since a version; and their version.
    func problems(since version: Int?) -> (version: Int, problems: [Problem])? {
        book.withLock { $0.version == version ? nil : ($0.version, $0.problems.present) }
    }

    /// Grows when the service's status has other signs.
    var signsVersion: Int { book.withLock { $0.signsVersion } }

    func register(_ api: inout AdminWork, connections: Int) {
        api.on(AdminAPI.problems) { call in
            LiveItems(items: self.problems(withHistory: try call(AdminAPI.history) ?? false))
        }
        api.on(AdminAPI.refusals) { _ in LiveItems(items: self.refusals.entries(at: self.clock.now())) }
        api.on(AdminAPI.series) { call in
            let range = try call(AdminAPI.seriesRange) ?? .quarterHour
            return self.series.answer(range, names: try call(AdminAPI.seriesNames) ?? SeriesRecorder.names)
        }
        EventRoutes(live: self, connections: connections).register(&api)
    }
}

/// A list in an object, so that it may have more members later.
package struct LiveItems<Item: Codable & Sendable>: Codable, Sendable {
    let items: [Item]
}
