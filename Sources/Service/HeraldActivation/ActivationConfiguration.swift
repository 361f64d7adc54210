package import HeraldListener

/// Address and limits of the activation listener.
package struct ActivationConfiguration: Sendable {
    /// A connection is unknown until a request shows a code or certificate of the service.
    package var listener: ListenerConfiguration
    /// Lifetime of certificates issued here.
    package var certificateLifetime: Duration = .seconds(365 * 86_400)
    /// Maximum age of a connection; an activation is three requests.
    package var connectionLifetime: Duration = .seconds(30)
    /// Time after which a silent connection is closed.
    package var idleTimeout: Duration = .seconds(10)
    /// Time limit for connections when the service stops.
    package var shutdownTimeout: Duration = .seconds(2)
    /// Maximum length of a certificate request, in bytes; one with an RSA key of 8192 bits has 4,000 in base64.
    package var maximumBodyBytes = 16_384
    /// Maximum length of a request's header, in bytes.
    package var maximumHeaderBytes = 16_384
    /// Burst and interval of wrong codes for an IPv4 address or an IPv6 network of 64 bits.
    package var wrongCodes = 5
    package var wrongCodeInterval: Duration = .seconds(12)
    /// The same for all addresses together; past it, only networks without a wrong code may try.
    package var wrongCodesInAll = 200
    package var wrongCodeIntervalInAll: Duration = .milliseconds(200)
    /// Burst and interval of renewals for one device.
    package var renewals = 3
    package var renewalInterval: Duration = .seconds(3600)
    /// Number of networks in the rate limiter, about 40 bytes each.
    package var remembered = 4096
    /// The same of devices: as many renew within an hour, and a further one waits.
    package var rememberedDevices = 65_536

    package init(host: String, port: Int) {
        listener = ListenerConfiguration(name: "activation", host: host, port: port)
        listener.speech = "HTTP"
        listener.maximumConnections = 1000
        // A fleet behind one address is activated at once, and each connection lasts some round trips.
        listener.unknownShare = 50
    }
}
