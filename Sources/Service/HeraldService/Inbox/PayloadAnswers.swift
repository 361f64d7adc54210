import HeraldJSON
import HeraldModel
import HeraldPhone

/// The check of a payload, as JSON.
struct PayloadAnswer: Codable, SnakeCased, Sendable {
    /// The answer of the HTTP/2 API.
    struct Answer: Codable, Sendable {
        let status: Int
        let reason: String?
    }

    /// The answer of the binary interface.
    struct Binary: Codable, Sendable {
        let limit: Int
        let status: UInt8
    }

    let pushType: String
    let accepted: Bool
    let size: Int
    let compactSize: Int
    let limit: Int
    let http2: Answer
    let binary: Binary
    let findings: [Finding]

    init(_ check: PayloadCheck) {
        pushType = check.pushType.rawValue
        accepted = check.isAccepted
        size = check.size
        compactSize = check.compactSize
        limit = check.pushType.maximumPayloadBytes
        http2 = Answer(status: check.refusal?.httpStatus ?? 200, reason: check.refusal?.reason)
        binary = Binary(limit: PayloadCheck.binaryBytes, status: check.binaryStatus)
        findings = check.findings
    }
}

/// The presentations of a payload without its app: keys of texts stand for themselves.
struct PreviewAnswer: Encodable, Sendable {
    let accepted: Bool
    let languages: [String]
    /// By state, then by language; empty if the payload is refused.
    let presentations: [CheckReport.View]

    init(_ payload: [UInt8], _ pushType: PushType, languages: [String], now: Double) {
        let report = CheckReport(
            payload: payload,
            name: "",
            pushType: pushType,
            bundle: nil,
            languages: languages,
            now: now
        )
        accepted = report.check.isAccepted
        self.languages = report.languages
        presentations = report.views
    }
}
