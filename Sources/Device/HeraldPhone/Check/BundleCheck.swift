/// Checks an app without a payload: every text in every language.
public struct BundleCheck: Sendable {
    /// The number of texts by language.
    public let texts: [String: Int]
    /// The number of different keys.
    public let keys: Int
    /// The findings, by key; ``Finding/place`` is the key or the file.
    public let findings: [Finding]

    /// Checks the texts, sounds and categories of an app.
    public init(_ bundle: AppBundle) {
        texts = bundle.texts.mapValues(\.count)
        let all = bundle.texts.values.reduce(into: Set<TextKey>()) { $0.formUnion($1.keys) }
        keys = all.count
        var findings = all.sorted().flatMap { BundleCheck.findings(of: $0, in: bundle) }
        for (name, sound) in bundle.sounds.sorted(by: { $0.key < $1.key }) {
            guard let fault = sound.fault else { continue }
            findings.append(Finding(.warning, name, "sound \(name) \(fault)"))
        }
        for name in bundle.categories.keys.sorted() {
            findings += DestructiveActions.findings(of: name, in: bundle, place: name)
        }
        if bundle.languages.isEmpty {
            findings.append(Finding(.warning, "", "the app has no texts: there is no Localizable.strings"))
        }
        self.findings = findings
    }

    private static func findings(of key: TextKey, in bundle: AppBundle) -> [Finding] {
        let languages = bundle.languages
        var findings: [Finding] = []
        let missing = languages.filter { bundle.texts[$0]?[key] == nil }
        if !missing.isEmpty, !bundle.untranslatedKeys.contains(key) {
            findings.append(Finding(.warning, key.text, "key \(key) missing in \(missing.joined(separator: ", "))"))
        }
        var byCount: [Int: [String]] = [:]
        for language in languages {
            guard let text = bundle.texts[language]?[key] else { continue }
            let format = FormatString(text.format)
            byCount[format.argumentCount, default: []].append(language)
            for fault in text.faults { findings.append(Finding(.warning, key.text, "\(key) (\(language)) \(fault)")) }
            guard format.mixesOrders else { continue }
            findings.append(Finding(.warning, key.text, "\(key) (\(language)) mixes %@ and %1$@: number all of them"))
        }
        if byCount.count > 1 {
            let counts = byCount.sorted { $0.key < $1.key }.map { count, languages in
                "\(count) \(count == 1 ? "argument" : "arguments") in \(languages.joined(separator: ", "))"
            }
            findings.append(Finding(.warning, key.text, "\(key) takes \(counts.joined(separator: ", but "))"))
        }
        return findings
    }
}
