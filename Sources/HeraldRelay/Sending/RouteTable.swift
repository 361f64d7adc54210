import HeraldModel
import HeraldProvider
import Synchronization

/// One way out: an app's service, and how it is at the moment.
final class Route: Sendable {
    let app: RelayApp
    let sender: any RelaySender
    let inquiry: (any Inquiry)?
    private let rest: Mutex<RouteRest>
    let credential: Mutex<CredentialRest>
    let journal = Mutex(JournalState())

    init(_ app: RelayApp, sender: any RelaySender, inquiry: (any Inquiry)?, policy: RetryPolicy) {
        self.app = app
        self.sender = sender
        self.inquiry = inquiry
        rest = Mutex(RouteRest(policy))
        credential = Mutex(CredentialRest(policy))
    }

    func wait(at now: WallTime) -> WallTime? { rest.withLock { $0.wait(at: now) } }

    func note(_ result: SendResult, at now: WallTime) {
        rest.withLock { rest in
            switch result {
            case .answered: rest.answered()
            case .notSent(let reason): rest.failed(reason, at: now, share: Double.random(in: 0...1))
            case .uncertain(let reason): rest.silent(reason, at: now, share: Double.random(in: 0...1))
            case .notAccepted, .impossible, .refused: break
            }
        }
    }

    /// Why it is not used now; nil if it is.
    func trouble(at now: WallTime) -> String? {
        rest.withLock { rest in
            guard let reason = rest.reason else { return nil }
            return "\(app.service) (\(app.name), \(app.environment.rawValue)): \(reason)"
        }
    }
}

/// The ways out, in the order of the configuration.
struct RouteTable: Sendable {
    private(set) var routes: [Route] = []

    /// Makes a table; routes whose app has not changed stay as they are, with their connections.
    /// - Returns: The table, and the routes that are in it no more.
    static func make(
        _ apps: [RelayApp],
        from old: RouteTable,
        _ make: (RelayApp) throws -> Route
    ) throws -> (RouteTable, [Route]) {
        var kept: [RelayApp: Route] = [:]
        for route in old.routes { kept[route.app] = route }
        var table = RouteTable()
        for app in apps {
            if let route = kept.removeValue(forKey: app) {
                table.routes.append(route)
            } else {
                table.routes.append(try make(app))
            }
        }
        return (table, Array(kept.values))
    }

    /// The way of a notification: the first that is for its topic and environment, and of its service where that is known.
    func route(topic: Topic, environment: PushEnvironment, service: String?) -> Route? {
        routes.first { route in
            route.app.environment == environment && route.app.isFor(topic)
                && (service == nil || service == route.app.name)
        }
    }
}
