import HeraldPhone
import HeraldService

/// The report of `herald check` about an app without a payload.
struct AppReport: Encodable {
    /// The folder, as it was named.
    let bundle: String
    let keys: Int
    /// Their number by language.
    let texts: [String: Int]
    let findings: [Finding]

    init(bundle: String, _ check: BundleCheck) {
        self.bundle = bundle
        (keys, texts, findings) = (check.keys, check.texts, check.findings)
    }

    /// The lines for people: the texts of each language, then the findings.
    var lines: [String] {
        let languages = texts.sorted { $0.key < $1.key }.map { language, count in
            "  \(shown(language))  \(count) of \(keys) texts"
        }
        let count =
            findings.isEmpty ? "no findings" : findings.count == 1 ? "1 finding" : "\(findings.count) findings"
        return ["\(shown(bundle)): \(count)"] + languages
            + findings.map { "\($0.severity.rawValue): \(shown($0.message))" }
    }

    private func shown(_ text: String) -> String {
        LogText.escaped(text, limit: CheckText.longestText, spelling: .terminal)
    }
}
