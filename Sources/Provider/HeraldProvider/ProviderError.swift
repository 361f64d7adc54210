import Foundation
import HeraldIdentity
public import HeraldModel
import NIOCore
import NIOPosix
import NIOSSL

/// Failure of a request that got no answer; a refusal is an answer (``PushAnswer/refused(_:)``), not an error.
public struct ProviderError: CodedError {
    /// Kind of failure.
    public struct Code: Hashable, Sendable {
        private enum Kind: Hashable, Sendable {
            case badCredential
            case badAuthority
            case badProxy
            case badRequest
            case unreachable
            case untrusted
            case timedOut
            case badAnswer
            case overloaded
            case shutDown
        }

        private let kind: Kind

        /// The certificate or key is unusable, or the service refuses it; nothing was sent.
        public static let badCredential = Code(kind: .badCredential)
        /// The authority's certificate is unreadable; nothing was sent.
        public static let badAuthority = Code(kind: .badAuthority)
        /// The proxy's address is unreadable, or the proxy refuses the tunnel; nothing was sent.
        public static let badProxy = Code(kind: .badProxy)
        /// The request cannot be encoded, for example because its payload is too long; nothing was sent.
        public static let badRequest = Code(kind: .badRequest)
        /// The service is unreachable, or the connection ended.
        public static let unreachable = Code(kind: .unreachable)
        /// The TLS handshake failed: one side does not trust the other's certificate; nothing was sent.
        public static let untrusted = Code(kind: .untrusted)
        /// No answer arrived in time.
        public static let timedOut = Code(kind: .timedOut)
        /// The answer is not that of a push service.
        public static let badAnswer = Code(kind: .badAnswer)
        /// Too many sends are queued (``ProviderConfiguration/maximumWaiting``); nothing was sent.
        public static let overloaded = Code(kind: .overloaded)
        /// The client was shut down.
        public static let shutDown = Code(kind: .shutDown)
    }

    /// Kind of failure; two errors with the same code are equal.
    public let code: Code
    /// Description for people, on one line, without token, key or payload.
    public let message: String
    /// Whether the service may have the notification although no answer came; if false, it does not have it.
    ///
    /// True if an attempt wrote the whole request and got no answer. A second send may then show the notification twice.
    public internal(set) var mayHaveArrived = false
    /// The request's `apns-id`, for searching the service's records.
    public internal(set) var id: NotificationID?

    package init(_ code: Code, _ message: String, mayHaveArrived: Bool = false) {
        self.code = code
        self.message = message
        self.mayHaveArrived = mayHaveArrived
    }
}

extension ProviderError {
    static let silent = ProviderError(.unreachable, "the connection is dead: the service did not answer a ping")
    static let notHTTP2 = ProviderError(
        .badAnswer,
        "the server does not speak HTTP/2, so it is not a push service: check host and port"
    )
    static let broken = ProviderError(.badAnswer, "the server violated HTTP/2: the client closed the connection")

    /// Whether ``init(connecting:to:)`` has words for an error.
    static func isOfNetwork(_ error: any Error) -> Bool {
        error is NIOSSLError || error is NIOSSLExtraError || error is NIOConnectionError || error is IOError
            || error is ChannelError || error is BoringSSLError
    }

    /// The reason for which the service refuses the client's certificate, if it sent one.
    ///
    /// In TLS 1.3 that alert follows the handshake and has another error type.
    private static func certificateFault(_ error: any Error) -> String? {
        guard case .alert(let alert)? = TLSFault(error) else { return nil }
        return alert.certificateFault
    }

    /// Whether an error means that the peer closed the connection.
    static func isOfClosing(_ error: any Error) -> Bool {
        switch error {
        case let error as ChannelError: error == .ioOnClosedChannel || error == .alreadyClosed || error == .eof
        case let error as IOError: error.errnoCode == ECONNRESET || error.errnoCode == EPIPE
        default: false
        }
    }

    static func isConnectTimeout(_ error: any Error) -> Bool {
        switch error {
        case let error as NIOConnectionError:
            !error.connectionErrors.isEmpty && error.connectionErrors.allSatisfy { isConnectTimeout($0.error) }
        case ChannelError.connectTimeout: true
        default: false
        }
    }

    /// Describes an error of the network libraries in words.
    init(connecting error: any Error, to connector: Connector) {
        let (host, endpoint) = (connector.host, connector.endpoint)
        if let fault = ProviderError.certificateFault(error) {
            self.init(.untrusted, "\(endpoint) refuses the provider's certificate: \(fault)")
            return
        }
        switch error {
        case let error as ProviderError: self = error
        case _ where ProviderError.isConnectTimeout(error): self.init(.timedOut, "\(endpoint) does not answer in time")
        case is NIOSSLExtraError:
            self.init(
                .untrusted,
                "the certificate of \(endpoint) does not name \(host): connect by one of its names, or add this one "
                    + "(`herald init --hostname \(host)`)"
            )
        case is NIOSSLError where TLSFault(error) == .untrusted:
            self.init(.untrusted, "the certificate of \(endpoint) is not signed by an authority that is trusted here")
        case is NIOSSLError where TLSFault(error) == .notTLS:
            self.init(.badAnswer, "\(endpoint) does not speak TLS, so it is not a push service: check host and port")
        case let error as NIOConnectionError where error.connectionErrors.isEmpty:
            self.init(.unreachable, "cannot reach \(endpoint): the name \(host) does not resolve to an address")
        case is NIOConnectionError:
            self.init(.unreachable, "cannot reach \(endpoint): is the service running, and is this its address?")
        case is NIOSSLError:
            let words = TLSFault.words(for: error)
            self.init(
                .untrusted,
                "the TLS handshake with \(endpoint) failed, so one side does not trust the other: \(words)"
            )
        case _ where ProviderError.isOfClosing(error):
            self.init(
                .unreachable,
                "\(endpoint) closed the connection without an answer: it refused the certificate (revoked, expired, for "
                    + "another service), or it is stopping"
            )
        default:
            self.init(.unreachable, "cannot reach \(endpoint): \(TLSFault.words(for: error))")
        }
    }
}
