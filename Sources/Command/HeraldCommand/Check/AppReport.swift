import HeraldPhone
import HeraldService

/// The report of `herald check` about an app without a payload.
struct AppReport: Encodable {
    /// The folder, as it was named.
    let name: String
    let check: BundleCheck

    private enum CodingKeys: String, CodingKey {
        case bundle, keys, texts, findings
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(name, forKey: .bundle)
        try container.encode(check.keys, forKey: .keys)
        try container.encode(check.texts, forKey: .texts)
        try container.encode(check.findings, forKey: .findings)
    }

    /// The lines for people: the texts of each language, then the findings.
    var lines: [String] {
        let languages = check.texts.sorted { $0.key < $1.key }.map { language, count in
            "  \(shown(language))  \(count) of \(check.keys) texts"
        }
        let findings = check.findings.map { "\($0.severity.rawValue): \(shown($0.message))" }
        return [
            "\(shown(name)): \(check.findings.isEmpty ? "no findings" : "\(check.findings.count) \(check.findings.count == 1 ? "finding" : "findings")")"
        ]
            + languages + findings
    }

    private func shown(_ text: String) -> String {
        LogText.escaped(text, limit: CheckText.longestText, spelling: .terminal)
    }
}
