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

/// The routes in use.
///
/// Nobody shuts down a route that a reload replaced: the tasks that still send through it keep it, and with the last of
/// them its sender goes, which closes its connections.
package final class RouteList: Sendable {
    private let make: @Sendable (RelayApp) throws -> Route
    private let current = Mutex<[Route]>([])

    init(make: @escaping @Sendable (RelayApp) throws -> Route) {
        self.make = make
    }

    /// Makes the routes of apps; `readToken` reads the token in a file, at each call.
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

    /// The routes, in the order of the configuration.
    var all: [Route] { current.withLock { $0 } }

    /// Replaces the apps; a route whose app has not changed stays with its connections.
    /// - Throws: If a credential is unusable. Then nothing changes.
    func replace(_ apps: [RelayApp]) throws {
        var kept: [RelayApp: Route] = [:]
        for route in all { kept[route.app] = route }
        let new = try apps.map { try kept.removeValue(forKey: $0) ?? make($0) }
        current.withLock { $0 = new }
    }
}
