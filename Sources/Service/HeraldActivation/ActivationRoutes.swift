import Foundation
import HTTPTypes
import HeraldIdentity
import HeraldListener
import HeraldModel
import HeraldTrust
import HeraldWeb
import Hummingbird
import Logging
import NIOCore
import Synchronization

/// Requests of the activation listener: Enrollment over Secure Transport (RFC 7030), and the address for devices.
final class ActivationRoutes: Sendable {
    private let configuration: ActivationConfiguration
    private let trust: TrustService
    private let devicePort: Int
    private let clock: any WallClock
    private let logger: Logger
    private let throttle: Mutex<CodeThrottle>
    private let renewals: Mutex<KeyedRateLimiter<DeviceID>>
    private let metrics = ActivationMetrics()

    init(
        configuration: ActivationConfiguration,
        trust: TrustService,
        devicePort: Int,
        clock: any WallClock,
        logger: Logger
    ) {
        self.configuration = configuration
        self.trust = trust
        self.devicePort = devicePort
        self.clock = clock
        self.logger = logger
        throttle = Mutex(CodeThrottle(configuration))
        renewals = Mutex(
            KeyedRateLimiter(
                burst: configuration.renewals,
                interval: configuration.renewalInterval,
                capacity: configuration.rememberedDevices
            )
        )
    }

    func add(to router: Router<ActivationContext>) {
        let est = router.group(".well-known/est")
        // The authorities of the devices' certificates and of the service (RFC 7030 §4.1).
        est.get("cacerts") { _, _ in
            try Self.message(self.trust.authorities, type: "application/pkcs7-mime")
        }
        est.get("csrattrs") { _, _ in Response(status: .noContent) }
        est.post("simpleenroll") { request, context in
            try await self.counted(.enroll) { try await self.enroll(request, context) }
        }
        est.post("simplereenroll") { request, context in
            try await self.counted(.renew) { try await self.renew(request, context) }
        }
        router.get(".well-known/herald") { _, _ in
            let announcement = self.trust.announcement.map { ",\"announcement\":\"\($0.text)\"" } ?? ""
            return Self.answer(
                Array("{\"device\":{\"port\":\(self.devicePort)}\(announcement)}\n".utf8),
                type: "application/json"
            )
        }
    }

    /// Counts the outcome of a request.
    private func counted(
        _ operation: ActivationMetrics.Operation,
        _ work: () async throws -> Response
    ) async throws -> Response {
        do {
            let response = try await work()
            metrics.count(operation, response.status)
            return response
        } catch {
            metrics.count(operation, (error as? ActivationRefusal)?.status ?? .internalServerError)
            throw error
        }
    }

    /// Enrolls a new device (RFC 7030 §4.2.1).
    private func enroll(_ request: Request, _ context: ActivationContext) async throws -> Response {
        let (network, address) = await context.client()
        let code = try await admit(request, network, address: address)
        let body = try await certificateRequest(request, context)
        // Until its answer the connection makes way for no other: the code is used up before. Not while its body is awaited,
        // since a code that was used up would hold a place.
        await context.becameKnown()
        let (now, lifetime) = (clock.now(), configuration.certificateLifetime)
        do {
            let issued = try await trust.folder.devices.activate(
                code: code,
                request: body,
                now: now,
                lifetime: lifetime
            )
            logger.info(
                "device activated",
                metadata: ["device": "\(issued.record.id)", "address": "\(address)"]
            )
            return try Self.certificate(PEMBundle.der(issued.certificate))
        } catch let error as TrustError {
            switch error.code {
            case .badRequest:
                _ = throttle.withLock { $0.wasWrong(network, at: now) }
                throw ActivationRefusal(.badRequest, error.message)
            case .notInvited:
                let isLogged = throttle.withLock { $0.wasWrong(network, at: now) }
                throw refused(error.message, address: address, isLogged: isLogged)
            case .noSigningKey:
                throw ActivationRefusal(.serviceUnavailable, "this service makes no certificates for devices")
            case .unavailable: throw unavailable(error)
            case .tooMany: throw ActivationRefusal(.conflict, error.message)
            default: throw error
            }
        }
    }

    /// The invitation code of a request, if the service has issued it.
    ///
    /// A code that is not open still gives a device the certificate whose answer it has missed.
    ///
    /// The look-up runs outside the lock. The verdict is given under it, so that simultaneous wrong codes are all counted.
    private func admit(
        _ request: Request,
        _ network: ClientNetwork,
        address: String
    ) async throws -> InvitationCode {
        guard let field = request.headers[.authorization] else {
            throw ActivationRefusal.unauthorized(
                "send the invitation code as the password of HTTP Basic authentication"
            )
        }
        let now = clock.now()
        try throttle.withLock { try Self.check(&$0, network, at: now) }
        let code = Self.password(field).flatMap { try? InvitationCode($0) }
        var isKnown = false
        do {
            if let code { isKnown = try await trust.folder.invitations.find(code) != nil }
        } catch let error as TrustError where error.code == .unavailable {
            throw unavailable(error)
        }
        let isLogged = try throttle.withLock { throttle in
            try Self.check(&throttle, network, at: now)
            return isKnown ? false : throttle.wasWrong(network, at: now)
        }
        if let code, isKnown { return code }
        let words =
            code == nil
            ? "this is not an invitation code: compare it with the original"
            : "this service did not issue this invitation code"
        throw refused(words, address: address, isLogged: isLogged)
    }

    private func refused(_ words: String, address: String, isLogged: Bool) -> ActivationRefusal {
        if isLogged {
            logger.notice("invitation code refused", metadata: ["address": "\(address)", "reason": "\(words)"])
        }
        return .unauthorized(words)
    }

    /// The refusal of a request while the other nodes of the cluster are out of reach.
    private func unavailable(_ error: TrustError) -> ActivationRefusal {
        logger.warning("a device was not activated", metadata: ["error": "\(error)"])
        return .later("the service cannot check the code now: try again")
    }

    private static func check(_ throttle: inout CodeThrottle, _ network: ClientNetwork, at now: WallTime) throws {
        guard let wait = throttle.wait(network, at: now) else { return }
        throw ActivationRefusal.tooMany("too many wrong invitation codes: try again later", after: wait)
    }

    /// Renews the certificate of a device (RFC 7030 §4.2.2).
    private func renew(_ request: Request, _ context: ActivationContext) async throws -> Response {
        guard let certificate = try await context.certificate() else {
            throw ActivationRefusal(.forbidden, "present the device's certificate in the TLS handshake")
        }
        let now = clock.now()
        let address = await context.client().address
        let device: DeviceIdentity
        switch trust.peers.device(certificate: certificate, at: now) {
        case .success(let identity): device = identity
        case .failure(let refusal):
            logger.notice(
                "certificate not renewed",
                metadata: ["address": "\(address)", "reason": "\(refusal.message)"]
            )
            let isOurs = refusal.code == .revocationUnknown
            throw ActivationRefusal(isOurs ? .serviceUnavailable : .forbidden, refusal.message)
        }
        let wait = renewals.withLock { renewals -> Duration? in
            if let wait = renewals.wait(device.id, at: now) { return wait }
            renewals.take(device.id, at: now)
            return nil
        }
        if let wait { throw ActivationRefusal.tooMany("this device renews too often", after: wait) }
        let body = try await certificateRequest(request, context)
        await context.becameKnown()
        let lifetime = configuration.certificateLifetime
        do {
            let issued = try await trust.folder.devices.renew(
                device.id,
                request: body,
                now: now,
                lifetime: lifetime
            )
            logger.info("device renewed", metadata: ["device": "\(device.id)", "address": "\(address)"])
            return try Self.certificate(PEMBundle.der(issued.certificate))
        } catch let error as TrustError {
            switch error.code {
            case .badRequest: throw ActivationRefusal(.badRequest, error.message)
            case .unknownID, .alreadyRevoked: throw ActivationRefusal(.forbidden, error.message)
            case .unavailable:
                throw ActivationRefusal.later("the service cannot check the device now: try again")
            case .tooMany:
                throw ActivationRefusal.tooMany(error.message, after: configuration.renewalInterval)
            case .noSigningKey:
                throw ActivationRefusal(.serviceUnavailable, "this service makes no certificates for devices")
            default: throw error
            }
        }
    }

    /// The certificate signing request in a body: base64 (RFC 7030 §4.2.1), PEM or DER.
    private func certificateRequest(_ request: Request, _ context: ActivationContext) async throws -> [UInt8] {
        let type = request.headers[.contentType]?.lowercased().prefix { $0 != ";" && $0 != " " }
        guard type == "application/pkcs10" else {
            throw ActivationRefusal(.unsupportedMediaType, "the content type must be application/pkcs10")
        }
        let body: ByteBuffer
        do {
            body = try await request.body.collect(upTo: configuration.maximumBodyBytes)
        } catch is NIOTooManyBytesError {
            // Herald does not wait for the rest of the body.
            let channel = context.channel
            channel.eventLoop.scheduleTask(in: .seconds(1)) { channel.close(promise: nil) }
            throw ActivationRefusal(
                .contentTooLarge,
                "a certificate request may have at most \(configuration.maximumBodyBytes) bytes"
            )
        }
        let bytes = Array(body.readableBytesView)
        if bytes.first == 0x30 || bytes.starts(with: "-----BEGIN".utf8) { return bytes }
        guard let decoded = Data(base64Encoded: Data(bytes), options: .ignoreUnknownCharacters), !decoded.isEmpty else {
            throw ActivationRefusal(.badRequest, "the body is not a certificate signing request in base64")
        }
        return Array(decoded)
    }

    /// The password of HTTP Basic authentication (RFC 7617); the user name does not matter.
    static func password(_ field: String) -> String? {
        guard field.utf8.count <= 512, field.prefix(6).lowercased() == "basic ",
            let pair = Data(base64Encoded: String(field.dropFirst(6).drop { $0 == " " })),
            let colon = pair.firstIndex(of: UInt8(ascii: ":"))
        else { return nil }
        return String(validating: pair[pair.index(after: colon)...], as: UTF8.self)
    }

    private static func certificate(_ der: [UInt8]) throws -> Response {
        try message([der], type: "application/pkcs7-mime; smime-type=certs-only")
    }

    private static func message(_ certificates: [[UInt8]], type: String) throws -> Response {
        let message = try CertificatesMessage.encode(certificates)
        let text = Data(message).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed]) + "\n"
        var response = answer(Array(text.utf8), type: type)
        if let name = HTTPField.Name("Content-Transfer-Encoding") { response.headers[name] = "base64" }
        return response
    }

    private static func answer(_ bytes: [UInt8], type: String) -> Response {
        var fields = HTTPFields()
        fields[.contentType] = type
        fields[.cacheControl] = "no-store"
        return Response(status: .ok, headers: fields, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }
}
