public import HeraldModel
public import Logging
public import Tracing

/// Host, credential and limits of a ``ProviderClient``.
public struct ProviderConfiguration: Sendable {
    /// Host name or address of the service; the service's certificate must contain it.
    public var host: String
    /// TCP port: 443 or 2197 for APNs; 2197 is Herald's default.
    public var port: Int
    /// The provider's credential: certificate or signing key.
    public var credential: ProviderCredential
    /// Address to connect to; nil for that of ``host``, which the certificate must contain in any case.
    package var address: String?
    /// Whether the service's certificate must contain ``host``; the chain is always verified.
    package var verifiesName = true
    /// PEM certificates of the authorities that may sign the service's certificate; nil means the system's.
    ///
    /// The client always verifies the chain and the name.
    public var authorities: [UInt8]?
    /// The HTTP proxy to go through; default ``ProviderProxy/environment``.
    public var proxy = ProviderProxy.environment
    /// Time limit for one connect, and for the answer to one attempt; default 30 s.
    public var timeout: Duration = .seconds(30)
    /// Time limit for one `send`: queueing, connecting, all attempts and pauses; default 120 s.
    public var totalTimeout: Duration = .seconds(120)
    /// Sends `herald-explain: 1`, so that Herald explains its answer in words; APNs ignores it; default false.
    public var explains = false
    /// Maximum number of queued sends.
    ///
    /// A further send fails at once with ``ProviderError/Code/overloaded``; default 100,000.
    public var maximumWaiting = 100_000
    /// Number of connections, and the timers that detect a dead one.
    public var connections = ProviderConnectionLimits()
    /// Retry policy.
    public var retry = ProviderRetry()
    /// Finds out the fate of a notification whose answer was lost, by its `apns-id`; nil if nothing can find out.
    ///
    /// The client resends a notification that never arrived, and reports one that was accepted as accepted. It calls the
    /// resolver on the sending task, at most once for each attempt. A broadcast has its `apns-request-id` instead.
    /// The client never resolves channel management requests.
    public var resolver: (@Sendable (NotificationID) async -> PushFate)?
    /// Log of connection events; the client never logs payloads, device tokens or keys.
    public var logger: Logger?
    /// Tracer for sends; nil means the process's tracer (`InstrumentationSystem`), if it has one.
    public var tracer: (any Tracer)?

    /// Makes a configuration with the default limits.
    public init(host: String, port: Int, credential: ProviderCredential, authorities: [UInt8]? = nil) {
        self.host = host
        self.port = port
        self.credential = credential
        self.authorities = authorities
    }

    /// Makes a configuration for Apple's service, with the default limits.
    /// - Parameters:
    ///   - environment: ``PushEnvironment/sandbox`` for development builds of an app.
    ///   - credential: Certificate or signing key.
    /// - Returns: A configuration for port 443 of `api.push.apple.com` or `api.sandbox.push.apple.com`.
    public static func apple(
        _ environment: PushEnvironment,
        credential: ProviderCredential
    ) -> ProviderConfiguration {
        let host = environment == .production ? "api.push.apple.com" : "api.sandbox.push.apple.com"
        return ProviderConfiguration(host: host, port: 443, credential: credential)
    }

    /// Makes a configuration for Apple's channel management API, which has its own hosts.
    ///
    /// Herald has one listener for both.
    /// - Returns: A configuration for `api-manage-broadcast.push.apple.com`, port 2196, or the sandbox host, port 2195.
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

/// Number of connections of one client, and the timers that detect a dead connection.
public struct ProviderConnectionLimits: Hashable, Sendable {
    /// Maximum number of connections; the client opens the first on demand; default 4.
    public var maximum = 4
    /// How long requests wait without a free stream before the client opens another connection; default 250 ms.
    public var growAfter: Duration = .milliseconds(250)
    /// Maximum number of concurrent requests on one connection, whatever the service allows; default 1,000.
    public var streams = 1000
    /// Silence after which the client pings an idle connection; default 60 s.
    public var pingIdleAfter: Duration = .seconds(60)
    /// Silence after which the client pings a connection and waits for the answer before using it; default 30 s.
    public var probeAfter: Duration = .seconds(30)
    /// Silence after which the client pings a connection with requests in flight; default 5 s.
    public var pingBusyAfter: Duration = .seconds(5)
    /// Time limit for the answer to a ping; past it the client replaces the connection; default 5 s.
    public var pingTimeout: Duration = .seconds(5)
    /// Number of consecutive request time-outs after which the client replaces a connection; default 16.
    public var timeoutsInARow = 16
    /// Pause after the first failed connect.
    ///
    /// It doubles with each failure; random jitter shortens it by up to half; default 200 ms.
    public var firstPause: Duration = .milliseconds(200)
    /// Longest pause between two connects; default 60 s.
    public var longestPause: Duration = .seconds(60)

    /// Makes the default limits.
    public init() {}
}

/// Result of a ``ProviderConfiguration/resolver``.
public enum PushFate: Hashable, Sendable {
    /// The service has it.
    case accepted
    /// The service does not have it, and that attempt can no longer reach it.
    case neverArrived
    /// Nobody knows.
    case unknown
}

extension ProviderConfiguration {
    /// A copy with every duration limited to 0 through 365 days, and every count to at least 1.
    var bounded: ProviderConfiguration {
        var configuration = self
        func bound(_ time: WritableKeyPath<ProviderConfiguration, Duration>) {
            configuration[keyPath: time] = min(max(configuration[keyPath: time], .zero), .seconds(365 * 86_400))
        }
        for time in [
            \ProviderConfiguration.timeout, \.totalTimeout, \.connections.growAfter, \.connections.pingIdleAfter,
            \.connections.probeAfter, \.connections.pingBusyAfter, \.connections.pingTimeout, \.connections.firstPause,
            \.connections.longestPause, \.retry.firstPause, \.retry.longestPause, \.retry.longestRetryAfter,
        ] {
            bound(time)
        }
        for number in [
            \ProviderConfiguration.maximumWaiting, \.connections.maximum, \.connections.streams,
            \.connections.timeoutsInARow, \.retry.attempts,
        ] {
            configuration[keyPath: number] = max(1, configuration[keyPath: number])
        }
        return configuration
    }
}
