import Foundation
import HeraldIdentity
import HeraldModel
import NIOCore
import NIOHTTP1
import NIOSSL
import X509

/// A client of Enrollment over Secure Transport (RFC 7030), as far as devices need it.
///
/// It verifies the service's certificate, by chain and by name, but for the announcement of a service that the device no
/// longer trusts: that is signed itself.
struct EnrollmentClient: Sendable {
    /// The longest answer, in bytes: a few certificates in base64.
    static let maximumAnswerBytes = 256 * 1024

    private let address: ServiceAddress
    private let exchange: HTTPExchange

    /// Creates a client; does not connect.
    ///
    /// It trusts any certificate if `authorities` is nil, and has none itself if `credential` is nil. `timeout` is that of each
    /// request.
    /// - Throws: ``EnrollmentError``.
    init(
        _ address: ServiceAddress,
        authorities: [NIOSSLCertificate]?,
        credential: DeviceCredential? = nil,
        timeout: Duration
    ) throws {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        tls.applicationProtocols = ["http/1.1"]
        if let authorities { tls.trustRoots = .certificates(authorities) } else { tls.certificateVerification = .none }
        if let credential {
            tls.certificateChain = credential.chain.map { .certificate($0) }
            tls.privateKey = .privateKey(credential.key)
        }
        self.address = address
        do {
            exchange = HTTPExchange(
                HostPort(host: address.host, port: address.port),
                tls: try NIOSSLContext(configuration: tls),
                timeout: timeout,
                maximumBytes: Self.maximumAnswerBytes
            )
        } catch {
            throw Self.failure(error, address)
        }
    }

    /// The authorities of the service (§4.1).
    func authorities() async throws -> [Certificate] {
        try certificates(try await ask(.GET, "est/cacerts"))
    }

    /// The service's device port and announcement.
    struct Description: Decodable {
        struct Listener: Decodable { var port: Int }

        var device: Listener
        /// Signed; nil if the service announces nothing.
        var announcement: String?
    }

    /// Asks the service for its device port and its announcement.
    func description() async throws -> Description {
        let answer = try await ask(.GET, "herald")
        guard let description = try? JSONDecoder().decode(Description.self, from: Data(answer)),
            (1...65_535).contains(description.device.port)
        else {
            throw EnrollmentError(.badAnswer, "the server at \(address) is not the activation listener of a service")
        }
        return description
    }

    /// Requests a first certificate with an invitation code (§4.2.1).
    func enroll(request: [UInt8], code: InvitationCode) async throws -> [Certificate] {
        let password = Data((":" + code.text).utf8).base64EncodedString()
        return try certificates(
            try await ask(.POST, "est/simpleenroll", body: request, authorization: "Basic \(password)")
        )
    }

    /// Requests the next certificate of the device whose credential the client presents (§4.2.2).
    func renew(request: [UInt8]) async throws -> [Certificate] {
        try certificates(try await ask(.POST, "est/simplereenroll", body: request))
    }

    private func certificates(_ answer: [UInt8]) throws -> [Certificate] {
        guard let message = Data(base64Encoded: Data(answer), options: .ignoreUnknownCharacters),
            let certificates = try? CertificatesMessage.decode(Array(message)), !certificates.isEmpty
        else {
            throw EnrollmentError(
                .badAnswer,
                "the service at \(address) answered with something other than certificates"
            )
        }
        return certificates
    }

    private func ask(
        _ method: HTTPMethod,
        _ path: String,
        body: [UInt8]? = nil,
        authorization: String? = nil
    ) async throws -> [UInt8] {
        var headers = HTTPHeaders()
        var content = ByteBuffer()
        if let authorization { headers.add(name: "authorization", value: authorization) }
        if let body {
            headers.add(name: "content-type", value: "application/pkcs10")
            headers.add(name: "content-transfer-encoding", value: "base64")
            let text = Data(body).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed]) + "\n"
            content.writeString(text)
        }
        let answer: HTTPExchange.Answer
        do {
            answer = try await exchange.send(method, "/.well-known/\(path)", headers: headers, body: content)
        } catch let error as CancellationError {
            throw error
        } catch {
            throw Self.failure(error, address)
        }
        let bytes = Array(answer.body.readableBytesView)
        guard answer.head.status == .ok else {
            throw refusal(answer.head, bytes)
        }
        return bytes
    }

    private func refusal(_ response: HTTPResponseHead, _ body: [UInt8]) -> EnrollmentError {
        let wait = response.headers.first(name: "retry-after").flatMap { Int64($0) }.map { min(max($0, 0), 86_400) }
        var words = "it answered \(response.status.code)"
        // A text for people, if it is one: at most its first line.
        if response.headers.first(name: "content-type")?.hasPrefix("text/plain") == true {
            let line = String(decoding: body.prefix(300), as: UTF8.self).prefix { !$0.isNewline }
            if !line.isEmpty {
                words = line.filter { !$0.isNewline && $0.unicodeScalars.allSatisfy(EnrollmentClient.isPlain) }
            }
        }
        let pause = wait.map { Duration.seconds($0) }
        return EnrollmentError(.refused, "the service refused: \(words)", retryAfter: pause, mayPass: wait != nil)
    }

    private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.generalCategory != .control
    }

    private static func failure(_ error: any Error, _ address: ServiceAddress) -> EnrollmentError {
        switch error {
        case is NIOSSLExtraError:
            EnrollmentError(
                .untrusted,
                "the service's certificate does not name \(address.host): start it with --hostname \(address.host)"
            )
        case is NIOSSLError where TLSFault(error) == .untrusted:
            EnrollmentError(
                .untrusted,
                "the certificate of \(address) is not signed by the authority that is trusted here"
            )
        case is HTTPExchange.TooLong:
            EnrollmentError(.badAnswer, "the service at \(address) sent too long an answer")
        case is NIOSSLError where TLSFault(error) == .notTLS:
            EnrollmentError(.unreachable, "the server at \(address) does not speak TLS: is it the activation port?")
        case is NIOSSLError where TLSFault(error) == .ended:
            EnrollmentError(
                .unreachable,
                "\(address) ended the connection without an answer: check that this is the activation port",
                mayPass: true
            )
        case is NIOSSLError:
            EnrollmentError(
                .refused,
                "\(address) refuses this device: its certificate may have expired, or this is not the activation port"
            )
        default:
            EnrollmentError(
                .unreachable,
                "\(address) does not answer: check that the service is running",
                mayPass: true
            )
        }
    }
}
