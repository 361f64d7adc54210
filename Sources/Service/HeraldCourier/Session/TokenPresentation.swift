import HeraldModel

/// The device tokens that a device has presented on its connection, where the service requires them.
///
/// Until the grace ends, every app's notifications come. After that only those of apps whose token was presented come.
struct TokenPresentation {
    private var presented: Set<AppNumber> = []
    private var isGraceOver = false
    private var isReported = false

    /// Whether the app's notifications may come now.
    func admits(_ app: AppNumber) -> Bool { !isGraceOver || presented.contains(app) }

    /// Whether the app's token was presented.
    func contains(_ app: AppNumber) -> Bool { presented.contains(app) }

    /// Notes that the app's token was presented.
    /// - Returns: Whether the app's notifications were withheld until now.
    mutating func add(_ app: AppNumber) -> Bool {
        let wasWithheld = !admits(app)
        presented.insert(app)
        return wasWithheld
    }

    /// Forgets apps that were removed: their next token is another one.
    mutating func remove(_ apps: [AppNumber]) {
        presented.subtract(apps)
    }

    /// Withholds from now on.
    mutating func endGrace() {
        isGraceOver = true
    }

    /// Whether this is the connection's first report of missing tokens; only that one is logged and counted.
    mutating func reports() -> Bool {
        defer { isReported = true }
        return !isReported
    }
}

extension MQTTSession {
    /// The reason string in SUBACK while the token of an app is missing.
    static let tokenDemand =
        "this service requires each app's token after every connect: publish it to apps/<topic>/token, "
        + "or the app's notifications wait"

    /// Whether an app's notifications may come now.
    func admits(_ app: AppNumber) -> Bool { tokens?.admits(app) ?? true }

    /// The action for a subscription to an app's notifications: it opens the app, or withholds them.
    func opening(_ app: AppNumber, qualityOfService: UInt8) -> ConnectionAction {
        admits(app) ? .open(app, qualityOfService: qualityOfService) : .withhold(app)
    }

    /// Whether the service requires the token of an app that the device has not presented.
    func lacksToken(of app: AppNumber) -> Bool { tokens.map { !$0.contains(app) } ?? false }

    /// Notes that the device has presented an app's token.
    /// - Returns: The action that opens the app, if its notifications were withheld.
    mutating func present(_ app: AppNumber) -> [ConnectionAction] {
        guard tokens?.add(app) ?? false,
            let entry = subscriptions.entries.first(where: { $0.number == app }),
            let qualityOfService = entry.notificationQoS
        else { return [] }
        return [.open(app, qualityOfService: qualityOfService)]
    }

    /// The report that notifications of apps are withheld; none if there are no such apps, or if it was made.
    mutating func reportMissingTokens(of apps: Int) -> [ConnectionAction] {
        guard apps > 0, tokens?.reports() ?? false else { return [] }
        return [.reportMissingTokens(apps: apps)]
    }

    /// Ends the time in which the device has to present its tokens.
    mutating func endTokenGrace() -> [ConnectionAction] {
        tokens?.endGrace()
        let withheld = subscriptions.entries.filter { $0.notificationQoS != nil && !admits($0.number) }
        return withheld.map { .withhold($0.number) } + reportMissingTokens(of: withheld.count)
    }
}
