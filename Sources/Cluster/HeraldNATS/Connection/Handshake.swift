/// Opening of a connection: INFO, TLS, CONNECT, and the server's first PONG.
///
/// It has neither clock nor socket.
struct Handshake {
    enum Effect: Hashable {
        case none
        case startTLS
        /// Sends CONNECT with these options, and PING.
        case connect(ConnectOptions)
        /// The server has accepted.
        case ready(NATSServerInfo)
    }

    private enum State {
        case awaitingFirstTLS
        case awaitingInfo(hasTLS: Bool)
        case awaitingTLS(NATSServerInfo)
        case awaitingPong(NATSServerInfo)
        case over
    }

    /// Name of the connection, for operators of the server.
    private let name: String
    private let credential: NATSCredential
    /// Whether a connection without TLS is refused.
    private let demandsTLS: Bool
    private var state: State

    /// With `isTLSFirst`, TLS begins before INFO.
    init(name: String, credential: NATSCredential, demandsTLS: Bool, isTLSFirst: Bool) {
        self.name = name
        self.credential = credential
        self.demandsTLS = demandsTLS
        state = isTLSFirst ? .awaitingFirstTLS : .awaitingInfo(hasTLS: false)
    }

    /// TLS is negotiated.
    mutating func secured() throws(NATSError) -> Effect {
        switch state {
        case .awaitingFirstTLS:
            state = .awaitingInfo(hasTLS: true)
            return .none
        case .awaitingTLS(let info): return try connect(info, usesTLS: true)
        case .awaitingInfo, .awaitingPong, .over: return .none
        }
    }

    /// The next step after an operation; `bytesLeft` are those that came with it and follow it.
    /// - Throws: The reason to leave the server.
    mutating func received(_ operation: ServerOperation, bytesLeft: Int) throws(NATSError) -> Effect {
        switch (state, operation) {
        case (_, .error(let text)):
            state = .over
            throw Self.error(text)
        case (.awaitingInfo(let hasTLS), .info(let info)):
            guard info.hasHeaders else {
                throw NATSError(.protocolViolation, "NATS \(info.version) has no message headers: use 2.2 or later")
            }
            if hasTLS { return try connect(info, usesTLS: true) }
            guard demandsTLS || info.requiresTLS else { return try connect(info, usesTLS: false) }
            guard info.offersTLS else {
                throw NATSError(.tls, "the server offers no TLS, and the settings demand it")
            }
            // Whoever sits between could put plain text in front of what TLS protects.
            guard bytesLeft == 0 else { throw NATSError(.tls, "the server sent plain text where TLS begins") }
            state = .awaitingTLS(info)
            return .startTLS
        case (.awaitingPong(let info), .pong):
            state = .over
            return .ready(info)
        case (.awaitingPong, .info(let info)):
            state = .awaitingPong(info)
            return .none
        case (.awaitingPong, .ok), (.awaitingPong, .ping): return .none
        default:
            state = .over
            throw NATSError(.protocolViolation, "the server sent something else than the beginning of NATS")
        }
    }

    private mutating func connect(_ info: NATSServerInfo, usesTLS: Bool) throws(NATSError) -> Effect {
        state = .awaitingPong(info)
        return .connect(try ConnectOptions(name: name, credential: credential, nonce: info.nonce, usesTLS: usesTLS))
    }

    /// The error of a server's `-ERR`.
    static func error(_ text: String) -> NATSError {
        let isRefusal = ["authorization", "authentication", "credential"].contains { text.lowercased().contains($0) }
        return NATSError(isRefusal ? .authorization : .protocolViolation, "the NATS server says: \(text)")
    }
}
