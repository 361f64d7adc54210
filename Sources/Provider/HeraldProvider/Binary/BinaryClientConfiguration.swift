public import Logging

/// Host, certificate and limits of a ``BinaryClient``.
public struct BinaryClientConfiguration: Sendable {
    /// Host name or address of the service; the service's certificate must contain it.
    public var host: String
    /// TCP port: 2195, also Herald's default.
    public var port: Int
    /// The provider's certificate, which also selects the app: PEM with the certificate, its chain and the private key, in
    /// any order.
    public var certificate: [UInt8]
    /// PEM certificates of the authorities that may sign the service's certificate; nil means the system's.
    ///
    /// The client always verifies the chain and the name.
    public var authorities: [UInt8]?
    /// The HTTP proxy to go through; default ``ProviderProxy/environment``.
    public var proxy = ProviderProxy.environment
    /// Time limit for one connect, and for the answer to a checkpoint; default 30 s.
    public var timeout: Duration = .seconds(30)
    /// Time limit for one `send`; default 120 s.
    public var totalTimeout: Duration = .seconds(120)
    /// Age of the oldest unconfirmed notification at which the client writes a checkpoint; default 1 s.
    ///
    /// A checkpoint ends the connection. A shorter time makes `send` return sooner and opens more connections: with the
    /// default at most one a second, while fewer than ``maximumUnconfirmed`` are sent in it.
    public var confirmAfter: Duration = .seconds(1)
    /// Number of unconfirmed notifications at which the client writes a checkpoint at once; default 1,000.
    public var maximumUnconfirmed = 1000
    /// Maximum number of queued sends.
    ///
    /// A further send fails at once with ``ProviderError/Code/overloaded``; default 100,000.
    public var maximumWaiting = 100_000
    /// Maximum length of a payload, in bytes, up to 65,535; default 2,048; services from before iOS 8 take 256.
    public var maximumPayloadBytes = 2048
    /// Whether sends wait, up to their time limit, while the service is unreachable.
    ///
    /// If false, they fail with the first failed connect; default true.
    public var waitsForService = true
    /// Pause after the first failed connect.
    ///
    /// It doubles with each failure; random jitter shortens it by up to half; default 200 ms.
    public var firstPause: Duration = .milliseconds(200)
    /// Longest pause between two connects; default 60 s.
    public var longestPause: Duration = .seconds(60)
    /// Log of connection events; the client never logs payloads, device tokens or keys.
    public var logger: Logger?

    /// Makes a configuration with the default limits.
    public init(host: String, port: Int, certificate: [UInt8], authorities: [UInt8]? = nil) {
        self.host = host
        self.port = port
        self.certificate = certificate
        self.authorities = authorities
    }

    /// A copy with every duration limited to 0 through 365 days, and every count to at least 1.
    var bounded: BinaryClientConfiguration {
        var configuration = self
        for time in [
            \BinaryClientConfiguration.timeout, \.totalTimeout, \.confirmAfter, \.firstPause, \.longestPause,
        ] {
            configuration[keyPath: time] = min(max(configuration[keyPath: time], .zero), .seconds(365 * 86_400))
        }
        for number in [\BinaryClientConfiguration.maximumUnconfirmed, \.maximumWaiting] {
            configuration[keyPath: number] = max(1, configuration[keyPath: number])
        }
        // The length field has two bytes.
        configuration.maximumPayloadBytes = min(max(1, configuration.maximumPayloadBytes), 65_535)
        return configuration
    }

    /// The configuration for ``ProviderTLS``.
    var provider: ProviderConfiguration {
        var provider = ProviderConfiguration(
            host: host,
            port: port,
            credential: .certificate(pem: certificate),
            authorities: authorities
        )
        provider.proxy = proxy
        provider.timeout = timeout
        return provider
    }
}
