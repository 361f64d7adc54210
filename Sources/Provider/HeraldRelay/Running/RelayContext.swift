import HeraldModel
import Logging
import Synchronization

/// Dependencies that the parts of a relay share.
struct RelayContext: Sendable {
    let configuration: RelayConfiguration
    let store: RelayStore
    /// Identifier of this relay in the column `owner`.
    let owner: String
    let clock: any WallClock
    let logger: Logger
    let metrics = RelayMetrics()
    let health: RelayHealth
    /// Wakes the pump.
    let signal = AsyncSignal()
    let routes: RouteList
}

/// The routes in use, and those that a reload replaced.
package final class RouteList: Sendable {
    private struct State {
        var table = RouteTable()
        /// Replaced routes, which may still be sending.
        var retired: [Route] = []
    }

    private let make: @Sendable (RelayApp) throws -> Route
    private let state = Mutex(State())

    init(make: @escaping @Sendable (RelayApp) throws -> Route) {
        self.make = make
    }

    /// - Parameters:
    ///   - apps: The apps, their services and credentials.
    ///   - configuration: Limits and intervals.
    ///   - readToken: Reads the token in a file, at each call.
    /// - Throws: If a credential is unusable.
    package convenience init(
        _ apps: [RelayApp],
        _ configuration: RelayConfiguration,
        readToken: @escaping @Sendable (String) throws -> String
    ) throws {
        self.init { app in
            Route(
                app,
                sender: try app.sender(timeout: configuration.timeout),
                journal: app.journalLookup(readToken),
                backOff: configuration.rules.backOff
            )
        }
        try replace(apps)
    }

    var table: RouteTable { state.withLock { $0.table } }

    /// The routes in use and the replaced ones.
    var all: [Route] { state.withLock { $0.table.routes + $0.retired } }

    /// Replaces the apps; a route whose app has not changed stays with its connections.
    /// - Throws: If a credential is unusable. Then nothing changes.
    func replace(_ apps: [RelayApp]) throws {
        let (new, gone) = try RouteTable.make(apps, from: table, make)
        state.withLock { state in
            state.table = new
            state.retired += gone
        }
    }
}
