import Foundation
import HTTPTypes
import HeraldModel
import HeraldTrust
import Hummingbird
import Logging
import NIOCore
import NIOPosix
import Synchronization

extension Activation {
    func addRoutes(to router: Router<ActivationContext>) {
        let est = router.group(".well-known/est")
        est.get("cacerts") { _, _ in
            try Activation.message(try self.authorities(), type: "application/pkcs7-mime")
        }
        est.get("csrattrs") { _, _ in Response(status: .noContent) }
        est.post("simpleenroll") { request, context in
            try await self.counted(.enroll) { try await self.enroll(request, context) }
        }
        est.post("simplereenroll") { request, context in
            try await self.counted(.renew) { try await self.renew(request, context) }
        }
        router.get(".well-known/herald") { _, _ in
            Activation.answer(
                Array("{\"device\":{\"port\":\(self.devicePort)}}\n".utf8),
                type: "application/json"
            )
        }
    }

    /// Counts how a request ends.
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

    /// RFC 7030 §4.1: what signs devices' certificates, and what vouches for the service.
    private func authorities() throws -> [[UInt8]] {
        [trust.folder.deviceAuthority.der] + (try trust.folder.publicAuthorities())
    }

    /// RFC 7030 §4.2.1: a device that is not known yet.
    private func enroll(_ request: Request, _ context: ActivationContext) async throws -> Response {
        let network = ClientNetwork(context.channel.remoteAddress)
        let code = try admit(request, network, context)
        let body = try await certificateRequest(request, context)
        let (now, lifetime) = (clock.now(), configuration.certificateLifetime)
        do {
            let issued = try await onDisk { [trust] in
                try trust.folder.activateDevice(code: code, request: body, now: now, lifetime: lifetime)
            }
            logger.info(
                "device activated",
                metadata: ["device": "\(issued.record.id)", "address": "\(context.address)"]
            )
            return try Activation.certificate(PEMBundle.der(issued.certificate))
        } catch let error as TrustError {
            switch error.code {
            case .badRequest:
                _ = throttle.withLock { $0.wasWrong(network, at: now) }
                throw ActivationRefusal(.badRequest, error.message)
            case .notInvited:
                throw ActivationRefusal.unauthorized("this invitation code is not good any more: \(error.message)")
            case .noSigningKey:
                throw ActivationRefusal(.serviceUnavailable, "this service makes no certificates for devices")
            default: throw error
            }
        }
    }

    /// The code that a request shows, if it is one that lets a device in.
    ///
    /// Looked at one after the other, so that many at once are counted as many.
    private func admit(
        _ request: Request,
        _ network: ClientNetwork,
        _ context: ActivationContext
    ) throws -> InvitationCode {
        guard let field = request.headers[.authorization] else {
            throw ActivationRefusal.unauthorized(
                "show the invitation code as the password of HTTP Basic authentication"
            )
        }
        let now = clock.now()
        let code = Activation.password(field).flatMap { try? InvitationCode($0) }
        let outcome: Result<InvitationCode, ActivationRefusal> = throttle.withLock { throttle in
            if let wait = throttle.wait(network, at: now) {
                return .failure(.tooMany("too many wrong invitation codes: try again later", after: wait))
            }
            let state = code.flatMap { trust.invitations.state(of: $0, at: now) }
            if state == .open, let code { return .success(code) }
            if throttle.wasWrong(network, at: now) {
                let what = code == nil ? "not a code" : state?.rawValue ?? "unknown"
                logger.notice(
                    "invitation code refused",
                    metadata: ["address": "\(context.address)", "code": "\(what)"]
                )
            }
            return .failure(.unauthorized(Activation.words(code, state)))
        }
        return try outcome.get()
    }

    private static func words(_ code: InvitationCode?, _ state: Invitation.State?) -> String {
        switch (code, state) {
        case (nil, _): "this is not an invitation code: compare it with the one that was given out"
        case (_, .used?): "this invitation code is used up: it works once; ask for another"
        case (_, .expired?): "this invitation code has expired: ask for another"
        case (_, .withdrawn?): "this invitation code was withdrawn: ask for another"
        default: "this invitation code is not one of this service's"
        }
    }

    /// RFC 7030 §4.2.2: a device that has a certificate, and wants the next.
    private func renew(_ request: Request, _ context: ActivationContext) async throws -> Response {
        guard let certificate = try await context.certificate() else {
            throw ActivationRefusal(.forbidden, "show the device's certificate in the TLS handshake")
        }
        let now = clock.now()
        let device: DeviceIdentity
        switch trust.peers.device(certificate: certificate, at: now) {
        case .success(let identity): device = identity
        case .failure(let refusal):
            logger.notice(
                "certificate not renewed",
                metadata: ["address": "\(context.address)", "reason": "\(refusal.message)"]
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
        let lifetime = configuration.certificateLifetime
        do {
            let issued = try await onDisk { [trust] in
                try trust.folder.renewDevice(device.id, request: body, now: now, lifetime: lifetime)
            }
            logger.info("device renewed", metadata: ["device": "\(device.id)", "address": "\(context.address)"])
            return try Activation.certificate(PEMBundle.der(issued.certificate))
        } catch let error as TrustError {
            switch error.code {
            case .badRequest: throw ActivationRefusal(.badRequest, error.message)
            case .unknownID, .alreadyRevoked: throw ActivationRefusal(.forbidden, error.message)
            case .tooMany:
                throw ActivationRefusal.tooMany(error.message, after: configuration.renewalInterval)
            case .noSigningKey:
                throw ActivationRefusal(.serviceUnavailable, "this service makes no certificates for devices")
            default: throw error
            }
        }
    }

    /// The certificate signing request of a body: base64 without PEM's lines around it (RFC 7030 §4.2.1); PEM and DER are
    /// read too, since people send them.
    private func certificateRequest(_ request: Request, _ context: ActivationContext) async throws -> [UInt8] {
        let type = request.headers[.contentType]?.lowercased().prefix { $0 != ";" && $0 != " " }
        guard type == "application/pkcs10" else {
            throw ActivationRefusal(.unsupportedMediaType, "send a request of the type application/pkcs10")
        }
        let body: ByteBuffer
        do {
            body = try await request.body.collect(upTo: configuration.maximumBodyBytes)
        } catch is NIOTooManyBytesError {
            // The rest is not waited for.
            let channel = context.channel
            channel.eventLoop.scheduleTask(in: .seconds(1)) { channel.close(promise: nil) }
            throw ActivationRefusal(
                .contentTooLarge,
                "a certificate request has at most \(configuration.maximumBodyBytes) bytes"
            )
        }
        let bytes = Array(body.readableBytesView)
        if bytes.first == 0x30 || bytes.starts(with: "-----BEGIN".utf8) { return bytes }
        guard let decoded = Data(base64Encoded: Data(bytes), options: .ignoreUnknownCharacters), !decoded.isEmpty else {
            throw ActivationRefusal(.badRequest, "the body is not a certificate signing request in base64")
        }
        return Array(decoded)
    }

    /// The password of HTTP Basic authentication (RFC 7617); the user name may be anything.
    static func password(_ field: String) -> String? {
        guard field.utf8.count <= 512, field.prefix(6).lowercased() == "basic ",
            let pair = Data(base64Encoded: String(field.dropFirst(6).drop { $0 == " " })),
            let colon = pair.firstIndex(of: UInt8(ascii: ":"))
        else { return nil }
        return String(validating: pair[pair.index(after: colon)...], as: UTF8.self)
    }

    /// Work that waits for a disk, on a thread that may.
    private func onDisk<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await NIOThreadPool.singleton.runIfActive(work)
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
