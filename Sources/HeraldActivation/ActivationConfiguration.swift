/// Where the activation door listens, and its limits.
package struct ActivationConfiguration: Sendable {
    package var host: String
    /// 0 picks a free port.
    package var port: Int
    /// How long a certificate is good that a device gets here.
    package var certificateLifetime: Duration = .seconds(365 * 86_400)
    /// How long a client may take from the TCP connection to the end of the TLS handshake.
    package var handshakeTimeout: Duration = .seconds(10)
    /// How long a connection lasts at most, however busy it is: an activation is three requests.
    package var connectionLifetime: Duration = .seconds(30)
    /// How long a connection may be silent, within a request or between two.
    package var idleTimeout: Duration = .seconds(10)
    /// How long what is left is waited for when the service stops.
    package var shutdownTimeout: Duration = .seconds(2)
    /// The most connections at one time, those in their handshake included.
    ///
    /// Past it new ones are closed at once.
    package var maximumConnections = 1000
    /// The longest certificate request, in bytes; one with an RSA key of 8192 bits has 4,000 in base64.
    package var maximumBodyBytes = 16_384
    /// The longest header of a request, in bytes.
    package var maximumHeaderBytes = 16_384
    /// How many wrong codes an address (an IPv6 network of 64 bits) may try at once, and how long each takes to come back.
    package var wrongCodes = 5
    package var wrongCodeInterval: Duration = .seconds(12)
    /// The same for all addresses together; past it, only who has not been wrong yet may try.
    package var wrongCodesInAll = 200
    package var wrongCodeIntervalInAll: Duration = .milliseconds(200)
    /// How many renewals a device may have at once, and how long each takes to come back.
    package var renewals = 3
    package var renewalInterval: Duration = .seconds(3600)
    /// How many addresses, and how many devices, are remembered: some 40 bytes each.
    package var remembered = 4096

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }
}
