import Foundation
import HeraldConsole
import HeraldGateway
import HeraldMailbox
import HeraldModel
import HeraldPhone
import HeraldTrust

/// The tools of the console on a running service.
struct ServiceTools: ConsoleTools {
    let assembly: ServiceAssembly

    init(_ assembly: ServiceAssembly) {
        self.assembly = assembly
    }

    func check(_ question: PayloadQuestion) throws -> any Encodable & Sendable {
        PayloadAnswer(PayloadCheck(question.payload, pushType: try pushType(question), now: seconds))
    }

    func preview(_ question: PayloadQuestion) throws -> any Encodable & Sendable {
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

    func token(_ question: ToolQuestion) throws -> any Encodable & Sendable {
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

    func jwt(_ question: ToolQuestion) throws -> any Encodable & Sendable {
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

    func certificate(_ question: ToolQuestion) throws -> any Encodable & Sendable {
        let readings: [CertificateReading]
        do {
            readings = try CertificateReading.all(pem: Array(question.text.utf8))
        } catch let error as TrustError {
            throw AdminError(.badRequest, error.message)
        }
        let now = assembly.clock.now()
        return CertificateAnswer(items: readings.map { CertificateAnswer.Item($0, assembly.trust.peers, now: now) })
    }

    func frame(_ question: ToolQuestion) throws -> any Encodable & Sendable {
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
