/// The fixed words of the server's notification, in the languages that it knows.
///
/// The texts of the app's own notifications are in its bundle instead. Document 003 has both ways.
struct FamilyWords: Hashable, Sendable {
    var title: String
    var body: String

    /// The words in the first of the languages that the server knows; else in English.
    static func words(in languages: [String]) -> FamilyWords {
        for language in languages {
            let code = language.lowercased().prefix { $0 != "-" && $0 != "_" }
            if let words = all[String(code)] { return words }
        }
        return english
    }

    private static let english = FamilyWords(title: "Dinner is ready", body: "Come to the table.")
    private static let all = [
        "en": english,
        "de": FamilyWords(title: "Das Essen ist fertig", body: "Kommt zu Tisch."),
        "es": FamilyWords(title: "La cena está lista", body: "A la mesa."),
        "fr": FamilyWords(title: "Le dîner est prêt", body: "À table !"),
    ]
}
