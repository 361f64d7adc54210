public import Logging

/// Where notifications go by the binary interface, as whom, and what that may take.
public struct BinaryClientConfiguration: Sendable {
    /// The service's host name or address; its certificate must name it.
    public var host: String
    /// The service's port: 2195, at Herald unless configured otherwise.
    public var port: Int
    /// The provider's certificate, which is also the app: PEM with the certificate, its chain, and the private key, in any
    /// order.
    public var certificate: [UInt8]
    /// The authorities that may vouch for the service, PEM; nil for those of the system.
    ///
    /// The service's certificate is always verified, by name and by chain.
    public var authorities: [UInt8]?
    /// How long the service may take to be connected to, and to say how far it has come when it is asked.
    public var timeout: Duration = .seconds(30)
    /// How long one send may take altogether.
    public var totalTimeout: Duration = .seconds(120)
    /// How old the oldest notification that is not settled becomes until the service is asked how far it has come.
    ///
    /// That ends the connection: the shorter this is, the sooner a `send` returns, and the more connections are made. With
    /// the default there is one in a second at most, while fewer than ``maximumUnsettled`` are sent in it.
    public var settleAfter: Duration = .seconds(1)
    /// How many notifications may be written and not settled; with so many, the service is asked at once.
    public var maximumUnsettled = 1000
    /// How many sends may wait to be written; what comes on top fails at once with ``ProviderError/Code/overloaded``.
    public var maximumWaiting = 100_000
    /// The longest payload, in bytes: 2,048 since iOS 8, 256 at services of the time before.
    public var maximumPayloadBytes = 2048
    /// Whether sends wait while the service cannot be reached, up to their time limit, or fail with the first attempt to
    /// connect that does.
    public var waitsForService = true
    /// The pause after the first failure to connect; it doubles with each further one, and each is shortened by chance to
    /// no less than half.
    public var firstPause: Duration = .milliseconds(200)
    /// The longest pause between attempts to connect.
    public var longestPause: Duration = .seconds(60)
    /// Where the client says what happens to its connections; never a payload, device token or key.
    public var logger: Logger?

    /// Makes a configuration with the default limits.
    public init(host: String, port: Int, certificate: [UInt8], authorities: [UInt8]? = nil) {
        self.host = host
        self.port = port
        self.certificate = certificate
        self.authorities = authorities
    }

    /// The configuration with every time between zero and a year, and every number of one at least: others mean the
    /// nearest that makes sense.
    var bounded: BinaryClientConfiguration {
        var configuration = self
        for time in [
            \BinaryClientConfiguration.timeout, \.totalTimeout, \.settleAfter, \.firstPause, \.longestPause,
        ] {
            configuration[keyPath: time] = min(max(configuration[keyPath: time], .zero), .seconds(365 * 86_400))
        }
        for number in [\BinaryClientConfiguration.maximumUnsettled, \.maximumWaiting] {
            configuration[keyPath: number] = max(1, configuration[keyPath: number])
        }
        // The length of the payload has two bytes.
        configuration.maximumPayloadBytes = min(max(1, configuration.maximumPayloadBytes), 65_535)
        return configuration
    }

    /// What TLS wants to know.
    var provider: ProviderConfiguration {
        ProviderConfiguration(
            host: host,
            port: port,
            credential: .certificate(pem: certificate),
            authorities: authorities
        )
    }
}
