/// A listener's address and the limits that apply before its protocol begins.
package struct ListenerConfiguration: Sendable {
    /// Name in logs and errors: `provider API`, `devices`.
    package var name: String
    /// The protocol over TLS, and how to ask for it, for the answer to a client of another one: `MQTT`.
    package var speech = "TLS"
    /// Whether the protocol waits for the client's first bytes.
    package var isClientFirst = true
    /// IP address or host name to listen on.
    package var host: String
    /// The port; 0 picks a free one.
    package var port: Int
    /// Name of the option that sets the port, for errors: `--api-port`.
    package var portOption = "port"
    /// Time from the TCP connection to the end of the TLS handshake.
    ///
    /// 10 s: slow links need a few round trips; anything longer occupies a connection slot for nothing.
    package var handshakeTimeout: Duration = .seconds(10)
    /// Maximum number of connections, including those in their handshake.
    ///
    /// At the limit an unknown connection makes way; if all are known, the new one is closed at once.
    package var maximumConnections = 100_000
    /// Maximum age of a connection whose client is not authenticated.
    ///
    /// 30 s: a client needs no time to think, only some round trips.
    package var unknownAge: Duration = .seconds(30)
    /// Percentage of ``maximumConnections`` that one network may have as unknown connections.
    ///
    /// 10: a fleet behind one address connects some hundred at a time, and a stranger cannot take every place.
    package var unknownShare = 10
    /// Networks of the load balancers whose connections begin with a PROXY protocol header.
    package var proxies: [AddressRange] = []
    /// Time from the TCP connection to the end of the PROXY protocol header.
    ///
    /// 5 s: the load balancer sends it without being asked.
    package var proxyTimeout: Duration = .seconds(5)
    /// Maximum bytes per socket read, at least 1.
    ///
    /// Small for listeners with many idle connections, because each connection keeps a buffer of this size.
    package var readBytes = 16 * 1024
    /// Bytes that the system takes of a connection beyond those on their way to the peer; nil for as many as it likes.
    ///
    /// Linux takes up to 4 MiB for a peer that reads nothing (`TCP_NOTSENT_LOWAT`, `net.ipv4.tcp_wmem`).
    package var unsentBytes: Int?
    /// Whether most connections are idle, so that memory per idle connection matters most.
    package var expectsIdleConnections = false

    package init(name: String, host: String, port: Int) {
        self.name = name
        self.host = host
        self.port = port
    }

    /// The answer to a client without TLS.
    var wordsForPlain: String { "this port (\(name)) speaks \(speech) over TLS, and your client spoke without TLS" }

    /// The answer to a client that speaks HTTP/1.1 over TLS.
    var wordsForHTTP1: String { "this port (\(name)) speaks \(speech) only, and your client spoke HTTP/1.1" }

    /// Maximum number of unknown connections of one network, at least 16.
    package var unknownPerNetwork: Int { max(16, maximumConnections * unknownShare / 100) }

    /// Maximum number of descriptors: also connections that are refused or make way, until they are closed.
    package var maximumDescriptors: Int { maximumConnections + Self.descriptorsBeyondLimit }

    package static let descriptorsBeyondLimit = 16
}
