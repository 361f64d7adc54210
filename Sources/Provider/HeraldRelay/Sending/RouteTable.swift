import HeraldModel

/// The routes, in the order of the configuration.
struct RouteTable: Sendable {
    private(set) var routes: [Route] = []

    /// Makes a table; a route whose app has not changed stays, with its connections.
    static func make(
        _ apps: [RelayApp],
        from old: RouteTable,
        _ make: (RelayApp) throws -> Route
    ) rethrows -> RouteTable {
        var kept: [RelayApp: Route] = [:]
        for route in old.routes { kept[route.app] = route }
        var table = RouteTable()
        for app in apps { table.routes.append(try kept.removeValue(forKey: app) ?? make(app)) }
        return table
    }

    /// The first route for a topic and environment, and for a service if that is known.
    func route(topic: Topic, environment: PushEnvironment, service: String?) -> Route? {
        routes.first { route in
            route.app.environment == environment && route.app.includes(topic)
                && (service == nil || service == route.app.name)
        }
    }
}
