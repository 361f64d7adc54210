import AsyncHTTPClient
import Foundation
import HeraldModel
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL

/// Makes a client, lends it, and ends it.
/// - Parameters:
///   - configuration: Where to, and as whom.
///   - body: What is done with the client; it is shut down when this returns or throws.
/// - Returns: What `body` returns.
/// - Throws: What ``ProviderClient/init(_:)`` or `body` throws.
public func withProviderClient<Result: Sendable>(
    _ configuration: ProviderConfiguration,
    _ body: (ProviderClient) async throws -> Result
) async throws -> Result {
    let client = try ProviderClient(configuration)
    do {
        let result = try await body(client)
        await client.shutdown()
        return result
    } catch {
        await client.shutdown()
        throw error
    }
}

/// Sends notifications to Herald, or to APNs, by the HTTP/2 API ("Sending notification requests to APNs").
///
/// Make one and keep it: it holds its connection open and its provider token for as long as they last. It may be used
/// from many tasks at a time. End it with ``shutdown()``, once, after the last request.
public final class ProviderClient: Sendable {
    private let configuration: ProviderConfiguration
    private let tokens: ProviderTokenSource?
    private let client: HTTPClient

    /// Makes a client; connects with the first request.
    /// - Parameter configuration: Where to, and as whom.
    /// - Throws: ``ProviderError/Code/badCredential``, ``ProviderError/Code/badAuthority``.
    public init(_ configuration: ProviderConfiguration) throws {
        self.configuration = configuration
        if case .key(let pem, let id, let team) = configuration.credential.kind {
            tokens = try ProviderTokenSource(pem: pem, keyID: id, team: team)
        } else {
            tokens = nil
        }
        let tls = try ProviderClient.tlsConfiguration(configuration)
        var http = HTTPClient.Configuration(tlsConfiguration: tls, redirectConfiguration: .disallow)
        http.connectionPool.retryConnectionEstablishment = false
        http.connectionPool.idleTimeout = .minutes(10)
        client = HTTPClient(configuration: http)
    }

    /// Sends one notification and waits for the answer.
    ///
    /// A provider token that the service calls expired is made anew, and the request repeated once; every other refusal
    /// is returned. Nothing else is repeated.
    /// - Parameter request: The notification.
    /// - Returns: The service's answer, acceptance or refusal.
    /// - Throws: ``ProviderError`` where there is no answer; `CancellationError`.
    public func send(_ request: PushRequest) async throws -> PushAnswer {
        do {
            return try await attempt(request)
        } catch let error as ProviderError {
            throw error
        } catch let error as CancellationError {
            throw error
        } catch {
            throw ProviderError(connecting: error, host: configuration.host, port: configuration.port)
        }
    }

    /// Closes the connection.
    public func shutdown() async {
        // The only failure is that it was shut down before.
        try? await client.shutdown()
    }

    private func attempt(_ push: PushRequest) async throws -> PushAnswer {
        let host = configuration.host.contains(":") ? "[\(configuration.host)]" : configuration.host
        var request = HTTPClientRequest(url: "https://\(host):\(configuration.port)/3/device/\(push.token.hex)")
        request.method = .POST
        for (name, value) in push.fields { request.headers.add(name: name, value: value) }
        if configuration.explains { request.headers.add(name: "herald-explain", value: "1") }
        if let tokens {
            let now = WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
            request.headers.add(name: "authorization", value: "bearer \(try tokens.token(at: now))")
        }
        request.body = .bytes(ByteBuffer(bytes: push.payload))
        let response = try await client.execute(request, timeout: TimeAmount(configuration.timeout))
        guard response.version.major == 2 else {
            throw ProviderError(
                .badAnswer,
                "the server speaks no HTTP/2, so it is no push service: check host and port"
            )
        }
        let body = try await response.body.collect(upTo: PushAnswer.maximumBodyBytes)
        return try PushAnswer(
            status: Int(response.status.code),
            field: { response.headers.first(name: $0) },
            body: Array(body.readableBytesView)
        )
    }

    /// TLS as a provider speaks it: the service verified by name and chain, the certificate shown where there is one.
    static func tlsConfiguration(_ configuration: ProviderConfiguration) throws -> TLSConfiguration {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        if let pem = configuration.authorities {
            guard let authorities = try? NIOSSLCertificate.fromPEMBytes(pem), !authorities.isEmpty else {
                throw ProviderError(.badAuthority, "the authority's file holds no certificate in PEM")
            }
            tls.trustRoots = .certificates(authorities)
        }
        if case .certificate(let pem) = configuration.credential.kind {
            tls.certificateChain = try ProviderClient.chain(pem)
            tls.privateKey = .privateKey(try ProviderClient.privateKey(pem))
        }
        return tls
    }

    private static func chain(_ pem: [UInt8]) throws -> [NIOSSLCertificateSource] {
        guard let chain = try? NIOSSLCertificate.fromPEMBytes(pem), !chain.isEmpty else {
            throw ProviderError(.badCredential, "the certificate's file holds no certificate in PEM")
        }
        return chain.map { .certificate($0) }
    }

    private static func privateKey(_ pem: [UInt8]) throws -> NIOSSLPrivateKey {
        do {
            return try NIOSSLPrivateKey(bytes: pem, format: .pem)
        } catch {
            throw ProviderError(
                .badCredential,
                "the certificate's file holds no private key in PEM: add it to the file"
            )
        }
    }
}

extension ProviderError {
    /// Whether an error is one of the connection, and so one that ``init(connecting:host:port:)`` knows words for.
    static func isOfNetwork(_ error: any Error) -> Bool {
        error is NIOSSLError || error is NIOSSLExtraError || error is NIOConnectionError || error is IOError
            || error is ChannelError
    }

    /// Whether the connection ended while a request was on its way.
    private static func isOfClosing(_ error: any Error) -> Bool {
        switch error {
        case let error as ChannelError: error == .ioOnClosedChannel || error == .alreadyClosed || error == .eof
        case let error as IOError: error.errnoCode == ECONNRESET || error.errnoCode == EPIPE
        // The HTTP/2 library's own, which is not imported here: GOAWAY came first.
        default: "\(type(of: error))" == "StreamClosed"
        }
    }

    /// Says in words what the network libraries say in types.
    init(connecting error: any Error, host: String, port: Int) {
        let place = "\(host):\(port)"
        switch error {
        case let error as HTTPClientError where error == .deadlineExceeded || error == .connectTimeout:
            self.init(.timedOut, "\(place) does not answer in time")
        case let error as HTTPClientError where error == .remoteConnectionClosed:
            self.init(.unreachable, "\(place) closed the connection: it may have refused the certificate")
        case let error as HTTPClientError where error == .tlsHandshakeTimeout:
            self.init(.timedOut, "\(place) does not finish the TLS handshake in time")
        case let error as HTTPClientError:
            self.init(.badRequest, "the request cannot be sent: \(error.shortDescription)")
        case let error as NIOSSLExtraError:
            self.init(.untrusted, "the certificate of \(place) is not valid for that name: \(error)")
        case let error as NIOSSLError where "\(error)".contains("CERTIFICATE_VERIFY_FAILED"):
            self.init(.untrusted, "the certificate of \(place) is not signed by an authority that is trusted here")
        case is NIOConnectionError:
            self.init(.unreachable, "cannot reach \(place): is the service running, and is it there?")
        case let error as NIOSSLError:
            self.init(.untrusted, "the TLS handshake with \(place) failed, so one of the two is not trusted: \(error)")
        case _ where ProviderError.isOfClosing(error):
            self.init(
                .unreachable,
                "\(place) closed the connection without an answer: it may have refused the certificate (revoked, expired, "
                    + "of another service), or be stopping"
            )
        default:
            self.init(.unreachable, "cannot reach \(place): \(error)")
        }
    }
}
