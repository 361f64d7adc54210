import Foundation
import HTTPTypes
import HeraldConsole
import HeraldGateway
import HeraldIdentity
import HeraldMailbox
import HeraldModel
import HeraldPhone
import HeraldTrust

// Rows of the tools: none of them changes the service or makes a key.
extension AdminAPI {
    static let checkPayload = AdminOperation<PayloadQuestion, PayloadAnswer>(
        .post,
        "tools/check",
        role: .sender,
        .reads,
        says: "The findings about a payload, and the answers of both interfaces.",
        answer: "The check."
    )
    static let previewPayload = AdminOperation<PayloadQuestion, PreviewAnswer>(
        .post,
        "tools/preview",
        role: .sender,
        .reads,
        says: "The presentation of a payload on a device, as far as it is known without the app.",
        answer: "The presentations.",
        schema: { ("application/json", PreviewAnswer.schema($0)) }
    )
    static let readToken = AdminOperation<ToolQuestion, TokenAnswer>(
        .post,
        "tools/token",
        role: .sender,
        .reads,
        says: "The registration of a device token.",
        answer: "The registration."
    )
    static let readProviderToken = AdminOperation<ToolQuestion, ProviderTokenAnswer>(
        .post,
        "tools/jwt",
        role: .sender,
        .reads,
        says: "The content of a provider token, and the answer that it gets now.",
        answer: "The content."
    )
    static let readCertificate = AdminOperation<ToolQuestion, CertificateAnswer>(
        .post,
        "tools/certificate",
        role: .sender,
        .reads,
        says: "The content of certificates and certificate signing requests in PEM; a private key is refused.",
        answer: "The content."
    )
    static let readFrame = AdminOperation<ToolQuestion, FrameAnswer>(
        .post,
        "tools/frame",
        role: .sender,
        .reads,
        says: "The notifications in bytes of the binary interface, in hexadecimal digits.",
        answer: "At most 100 notifications."
    )

    static let tools = [
        checkPayload.row, previewPayload.row, readToken.row, readProviderToken.row, readCertificate.row, readFrame.row,
    ]
}

/// The tools of the console on a running service.
struct ServiceTools: Sendable {
    let assembly: ServiceAssembly

    func register(_ api: inout AdminWork) {
        api.on(AdminAPI.checkPayload) { call in try check(call.body) }
        api.on(AdminAPI.previewPayload) { call in try preview(call.body) }
        api.on(AdminAPI.readToken) { call in try token(call.body) }
        api.on(AdminAPI.readProviderToken) { call in try jwt(call.body) }
        api.on(AdminAPI.readCertificate) { call in try certificate(call.body) }
        api.on(AdminAPI.readFrame) { call in try frame(call.body) }
    }

    private func check(_ question: PayloadQuestion) throws -> PayloadAnswer {
        PayloadAnswer(PayloadCheck(question.payload, pushType: try pushType(question), now: seconds))
    }

    private func preview(_ question: PayloadQuestion) throws -> PreviewAnswer {
        let languages = question.languages ?? []
        guard languages.count <= PayloadQuestion.maximumLanguages,
            languages.allSatisfy({ (1...35).contains($0.utf8.count) })
        else {
            throw AdminError(
                .badRequest,
                "languages has at most \(PayloadQuestion.maximumLanguages) language tags, like de or zh-Hans"
            )
        }
        return PreviewAnswer(question.payload, try pushType(question) ?? .alert, languages: languages, now: seconds)
    }

    private func token(_ question: ToolQuestion) throws -> TokenAnswer {
        guard let token = DeviceToken(question.text.trimmingCharacters(in: .whitespacesAndNewlines)) else {
            throw AdminError(.badRequest, "a device token of this service has 64 hexadecimal digits")
        }
        let contents = assembly.trust.seal.open(token)
        let registration = contents.flatMap { assembly.delivery.postOffice.registration($0.slot) }
        return TokenAnswer(
            token,
            contents,
            device: contents.flatMap { assembly.delivery.registry.device($0.slot.device) },
            app: contents.flatMap { assembly.delivery.registry.app($0.slot.app) },
            registration: registration
        )
    }

    private func jwt(_ question: ToolQuestion) throws -> ProviderTokenAnswer {
        var text = question.text.trimmingCharacters(in: .whitespacesAndNewlines)
        if text.lowercased().hasPrefix("bearer ") { text = String(text.dropFirst(7)) }
        let token = Array(text.utf8)
        let verifier = assembly.trust.providerTokens
        let now = assembly.clock.now()
        return ProviderTokenAnswer(
            ProviderTokenReading(token),
            verifier.verify(token, now: now),
            verifier.credentials,
            now: now
        )
    }

    private func certificate(_ question: ToolQuestion) throws -> CertificateAnswer {
        let readings: [CertificateReading]
        do {
            readings = try CertificateReading.all(pem: Array(question.text.utf8))
        } catch let error as TrustError {
            throw AdminError(.badRequest, error.message)
        }
        let now = assembly.clock.now()
        return CertificateAnswer(items: readings.map { CertificateAnswer.Item($0, assembly.trust.peers, now: now) })
    }

    private func frame(_ question: ToolQuestion) throws -> FrameAnswer {
        let digits = question.text.filter { !$0.isWhitespace && $0 != ":" }
        guard !digits.isEmpty, let bytes = Hex.bytes(digits) else {
            throw AdminError(.badRequest, "the text must have bytes in hexadecimal digits, an even number")
        }
        let limits = assembly.configuration.binary
        return FrameAnswer(bytes, payloadBytes: limits.payloadBytes, frameBytes: limits.frameBytes)
    }

    private func pushType(_ question: PayloadQuestion) throws -> PushType? {
        guard let text = question.pushType else { return nil }
        guard let type = PushType(rawValue: text) else {
            let all = PushType.allCases.map(\.rawValue).joined(separator: ", ")
            throw AdminError(.badRequest, "push_type must be one of \(all)")
        }
        return type
    }

    private var seconds: Double { Double(assembly.clock.now().milliseconds) / 1000 }
}
