import Foundation
import HeraldTrust
import NIOCore
import NIOPosix
import NIOSSL

extension ProviderError {
    /// A connection that says nothing any more.
    static let silent = ProviderError(.unreachable, "the connection is silent, and a ping got no answer: it is dead")
    static let notHTTP2 = ProviderError(
        .badAnswer,
        "the server speaks no HTTP/2, so it is no push service: check host and port"
    )
    static let broken = ProviderError(.badAnswer, "the server breaks the rules of HTTP/2: the connection was closed")

    /// Whether an error is one of the connection, and so one that ``init(connecting:host:port:)`` knows words for.
    static func isOfNetwork(_ error: any Error) -> Bool {
        error is NIOSSLError || error is NIOSSLExtraError || error is NIOConnectionError || error is IOError
            || error is ChannelError || error is BoringSSLError
    }

    /// Why the service does not take our certificate, if it says so.
    ///
    /// With TLS 1.3 its alert comes after the handshake, and is an error of another type than one within it.
    private static func certificateFault(_ error: any Error) -> String? {
        guard case .alert(let alert)? = TLSFault(error) else { return nil }
        return alert.certificateFault
    }

    /// Whether the connection ended while a request was on its way.
    static func isOfClosing(_ error: any Error) -> Bool {
        switch error {
        case let error as ChannelError: error == .ioOnClosedChannel || error == .alreadyClosed || error == .eof
        case let error as IOError: error.errnoCode == ECONNRESET || error.errnoCode == EPIPE
        default: false
        }
    }

    private static func isConnectTimeout(_ error: any Error) -> Bool {
        switch error {
        case let error as NIOConnectionError:
            !error.connectionErrors.isEmpty && error.connectionErrors.allSatisfy { isConnectTimeout($0.error) }
        case ChannelError.connectTimeout: true
        default: false
        }
    }

    /// Says in words what the network libraries say in types.
    init(connecting error: any Error, host: String, port: Int) {
        let place = "\(host):\(port)"
        if let fault = ProviderError.certificateFault(error) {
            self.init(.untrusted, "\(place) refuses the provider's certificate: \(fault)")
            return
        }
        switch error {
        case let error as ProviderError: self = error
        case _ where ProviderError.isConnectTimeout(error): self.init(.timedOut, "\(place) does not answer in time")
        case let error as NIOSSLExtraError:
            self.init(.untrusted, "the certificate of \(place) is not valid for that name: \(error)")
        case is NIOSSLError where TLSFault(error) == .untrusted:
            self.init(.untrusted, "the certificate of \(place) is not signed by an authority that is trusted here")
        case is NIOSSLError where TLSFault(error) == .notTLS:
            self.init(.badAnswer, "\(place) speaks no TLS, so it is no push service: check host and port")
        case let error as NIOConnectionError where error.connectionErrors.isEmpty:
            self.init(.unreachable, "cannot reach \(place): nobody knows an address of \(host)")
        case is NIOConnectionError:
            self.init(.unreachable, "cannot reach \(place): is the service running, and is it there?")
        case is NIOSSLError:
            let words = TLSFault.words(for: error)
            self.init(.untrusted, "the TLS handshake with \(place) failed, so one of the two is not trusted: \(words)")
        case _ where ProviderError.isOfClosing(error):
            self.init(
                .unreachable,
                "\(place) closed the connection without an answer: it may have refused the certificate (revoked, expired, "
                    + "of another service), or be stopping"
            )
        default:
            self.init(.unreachable, "cannot reach \(place): \(TLSFault.words(for: error))")
        }
    }
}
