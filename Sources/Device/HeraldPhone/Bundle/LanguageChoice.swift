/// Chooses a language of a bundle for a user, as the system does.
public enum LanguageChoice {
    /// Former names of language folders.
    private static let formerNames = [
        "english": "en", "french": "fr", "german": "de", "italian": "it", "japanese": "ja", "spanish": "es",
        "dutch": "nl", "portuguese": "pt", "swedish": "sv", "danish": "da", "finnish": "fi", "norwegian": "nb",
        "korean": "ko",
    ]
    /// Replaced language codes (ISO 639).
    private static let formerCodes = ["no": "nb", "iw": "he", "in": "id", "tl": "fil", "ji": "yi"]
    /// The scripts of languages that have two, by region.
    private static let scripts = [
        "zh-tw": "hant", "zh-hk": "hant", "zh-mo": "hant", "zh-cn": "hans", "zh-sg": "hans", "zh": "hans",
    ]

    /// Parent locales (CLDR, `parentLocales`): regions outside `own` fall back to `parent`, such as es-MX to es-419.
    private static let leaders = [
        "es": (own: ["es", "ea", "gq", "ic", "ph"], parent: ["419"]),
        "pt": (own: ["br"], parent: ["pt"]),
        "en": (own: ["us", "pr", "gu", "vi", "as", "um"], parent: ["001", "gb"]),
    ]

    /// Chooses the first of the user's preferences that the bundle has: exactly, or in the parent locale (es-MX: es-419), or
    /// without region, or in another region; else the development language.
    /// - Parameters:
    ///   - available: The bundle's languages, as in the names of its folders (`pt-BR`, `zh_TW`, `French`).
    ///   - preferences: The user's languages, in order of preference (`fr-CA`).
    ///   - development: The bundle's development language.
    /// - Returns: An element of `available`; nil only if it is empty.
    public static func choose(from available: [String], preferences: [String], development: String) -> String? {
        let available = available.sorted()
        for preference in preferences + [development] {
            if let language = match(Tag(preference), available) { return language }
        }
        return available.first
    }

    private static func match(_ wanted: Tag, _ available: [String]) -> String? {
        let tags = available.map { (name: $0, tag: Tag($0)) }
        if let exact = tags.first(where: { $0.tag == wanted }) { return exact.name }
        let kin = tags.filter { $0.tag.language == wanted.language && $0.tag.script == wanted.script }
        if let region = wanted.region, let leader = leaders[wanted.language], !leader.own.contains(region) {
            for parent in leader.parent {
                if let name = kin.first(where: { $0.tag.region == parent })?.name { return name }
            }
        }
        return (kin.first { $0.tag.region == nil } ?? kin.first)?.name
    }

    /// A language tag (RFC 5646), as far as bundles need it.
    private struct Tag: Hashable {
        var language: String
        var script: String?
        var region: String?

        init(_ name: String) {
            var parts = name.lowercased().split { $0 == "-" || $0 == "_" }.map(String.init)
            let first = parts.isEmpty ? "" : parts.removeFirst()
            let code = LanguageChoice.formerNames[first] ?? first
            language = LanguageChoice.formerCodes[code] ?? code
            script = parts.first { $0.count == 4 && !($0.first?.isNumber ?? true) }
            region = parts.first { $0.count == 2 || ($0.count == 3 && $0.allSatisfy(\.isNumber)) }
            if script == nil {
                script =
                    region.flatMap { LanguageChoice.scripts["\(language)-\($0)"] } ?? LanguageChoice.scripts[language]
            }
        }
    }
}
