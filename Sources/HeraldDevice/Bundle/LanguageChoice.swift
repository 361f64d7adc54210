/// Which of a bundle's languages the user gets, as the system chooses it.
public enum LanguageChoice {
    /// The names that folders of languages had before they were codes.
    private static let formerNames = [
        "english": "en", "french": "fr", "german": "de", "italian": "it", "japanese": "ja", "spanish": "es",
        "dutch": "nl", "portuguese": "pt", "swedish": "sv", "danish": "da", "finnish": "fi", "norwegian": "nb",
        "korean": "ko",
    ]
    /// Codes that were replaced by others (ISO 639).
    private static let formerCodes = ["no": "nb", "iw": "he", "in": "id", "tl": "fil", "ji": "yi"]
    /// The scripts of languages that are written in two, by region.
    private static let scripts = [
        "zh-tw": "hant", "zh-hk": "hant", "zh-mo": "hant", "zh-cn": "hans", "zh-sg": "hans", "zh": "hans",
    ]

    /// The regions in which a language is written as in the one that the others follow: what is not in this list
    /// follows the second (CLDR, `parentLocales`: Spanish of America, European Portuguese, English of the world).
    private static let leaders = [
        "es": (own: ["es", "ea", "gq", "ic", "ph"], parent: ["419"]),
        "pt": (own: ["br"], parent: ["pt"]),
        "en": (own: ["us", "pr", "gu", "vi", "as", "um"], parent: ["001", "gb"]),
    ]

    /// The language for a user: the first preference that the bundle has, exactly, or in the region that the user's
    /// follows (es-MX: es-419), or without its region, or in another region; else the development language.
    ///
    /// - Parameters:
    ///   - available: The bundle's languages, as its folders are named (`pt-BR`, `zh_TW`, `French`).
    ///   - preferences: The user's languages, the dearest first (`fr-CA`).
    ///   - development: The bundle's development language.
    /// - Returns: One out of `available`, spelt as there; nil only where nothing is available.
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

    /// A language tag (RFC 5646), as far as languages of bundles need it.
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
