public import HeraldModel
public import Logging
public import Tracing

/// Where a provider's notifications go, how it proves who it is, and what it may take.
public struct ProviderConfiguration: Sendable {
    /// The service's host name or address; its certificate must name it.
    public var host: String
    /// The service's port: 443 or 2197 at APNs, 2197 unless configured otherwise at Herald.
    public var port: Int
    /// How the provider proves who it is.
    public var credential: ProviderCredential
    /// The authorities that may vouch for the service, PEM; nil for those of the system.
    ///
    /// The service's certificate is always verified, by name and by chain.
    public var authorities: [UInt8]?
    /// How long the service may take to answer one request, and to be connected to.
    public var timeout: Duration = .seconds(30)
    /// How long one send may take altogether: waiting for a place, connecting, every attempt and every pause.
    public var totalTimeout: Duration = .seconds(120)
    /// Whether to ask the service to say in words what it did (`herald-explain: 1`); APNs ignores it.
    public var explains = false
    /// How many sends may wait for a place on a connection; what comes on top fails at once with
    /// ``ProviderError/Code/overloaded``.
    public var maximumWaiting = 100_000
    /// What a connection is used for and when it is doubted.
    public var connections = ProviderConnectionLimits()
    /// When a notification is sent again.
    public var retry = ProviderRetry()
    /// Finds out what became of a notification whose answer was lost, by its `apns-id`; nil if nobody can be asked.
    ///
    /// It is asked about broadcasts by their `apns-request-id`, and about no request that makes, reads or deletes channels.
    ///
    /// With it an ambiguous end is resolved instead of reported: one that was accepted is answered as accepted, one that
    /// never arrived is sent again with the same `apns-id`. It is called on the task that sends, at most once for each
    /// attempt.
    public var resolver: (@Sendable (NotificationID) async -> PushFate)?
    /// Where the client says what happens to its connections; never a payload, device token or key.
    public var logger: Logger?
    /// Who traces sends; nil for the tracer that the process was given (`InstrumentationSystem`), if it was given one.
    public var tracer: (any Tracer)?

    /// Makes a configuration with the default limits.
    public init(host: String, port: Int, credential: ProviderCredential, authorities: [UInt8]? = nil) {
        self.host = host
        self.port = port
        self.credential = credential
        self.authorities = authorities
    }

    /// Makes a configuration for Apple's own service, with the default limits.
    /// - Parameters:
    ///   - environment: ``PushEnvironment/sandbox`` for apps in development, which Apple calls so too.
    ///   - credential: How the provider proves who it is.
    /// - Returns: One for `api.push.apple.com` or `api.sandbox.push.apple.com`, port 443.
    public static func apple(
        _ environment: PushEnvironment,
        credential: ProviderCredential
    ) -> ProviderConfiguration {
        let host = environment == .production ? "api.push.apple.com" : "api.sandbox.push.apple.com"
        return ProviderConfiguration(host: host, port: 443, credential: credential)
    }

    /// Makes a configuration for Apple's channel management, which has doors of its own; at Herald it is the same door.
    /// - Returns: One for port 2196 of `api-manage-broadcast.push.apple.com`, or 2195 of its sandbox.
    public static func appleChannels(
        _ environment: PushEnvironment,
        credential: ProviderCredential
    ) -> ProviderConfiguration {
        environment == .production
            ? ProviderConfiguration(host: "api-manage-broadcast.push.apple.com", port: 2196, credential: credential)
            : ProviderConfiguration(
                host: "api-manage-broadcast.sandbox.push.apple.com",
                port: 2195,
                credential: credential
            )
    }
}

/// What a client may take of connections, and when it doubts one.
public struct ProviderConnectionLimits: Hashable, Sendable {
    /// How many connections one client has at most; it starts with one.
    public var maximum = 4
    /// How long requests wait, with no free stream on any connection, until one more is opened.
    public var growAfter: Duration = .milliseconds(250)
    /// How many requests are on one connection at once, whatever the service allows.
    public var streams = 1000
    /// After how much silence a connection with nothing on it is pinged.
    public var pingIdleAfter: Duration = .seconds(60)
    /// After how much silence a connection is pinged, and waited for, before it is used again.
    public var probeAfter: Duration = .seconds(30)
    /// After how much silence a connection that owes answers is pinged.
    public var pingBusyAfter: Duration = .seconds(5)
    /// How long a pong may take; then the connection is replaced.
    public var pingTimeout: Duration = .seconds(5)
    /// How many requests in a row may time out on a connection that answers nothing else, until it is replaced.
    public var timeoutsInARow = 16
    /// The pause after the first failure to connect; it doubles with each further one, and each is shortened by chance to
    /// no less than half.
    public var firstPause: Duration = .milliseconds(200)
    /// The longest pause between attempts to connect.
    public var longestPause: Duration = .seconds(60)

    /// Makes the default limits.
    public init() {}
}

/// What is known of a notification whose answer was lost.
public enum PushFate: Hashable, Sendable {
    /// The service has it.
    case accepted
    /// The service never had it, and will not get it from that attempt any more.
    case neverArrived
    /// Nobody knows.
    case unknown
}
