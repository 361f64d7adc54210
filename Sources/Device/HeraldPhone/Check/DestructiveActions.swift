/// Finds actions that look destructive and are not marked so.
///
/// No action of an alert should destroy data on the device ("The Remote Notification Payload"). This is a guess by words.
enum DestructiveActions {
    private static let words: Set<String> = [
        "delete", "destroy", "discard", "erase", "purge", "remove", "trash", "uninstall", "wipe",
        "entfernen", "löschen", "vernichten", "verwerfen",
        "détruire", "effacer", "supprimer",
        "borrar", "destruir", "eliminar", "suprimir",
    ]
    /// Words of languages without spaces.
    private static let parts = ["削除", "消去", "破棄", "删除", "刪除", "清除", "抹掉"]

    /// Whether a text or identifier has a word for destroying something: `DELETE_MAIL`, `deleteMail`, `Delete mail`.
    static func looksDestructive(_ text: String) -> Bool {
        guard !parts.contains(where: { text.contains($0) }) else { return true }
        var word = ""
        var last: Character?
        // An identifier's words begin with a capital letter, unless all are capitals.
        for character in text + " " {
            let begins = character.isUppercase && last?.isLowercase == true
            if begins || !character.isLetter {
                if words.contains(word.lowercased()) { return true }
                word = ""
            }
            if character.isLetter { word.append(character) }
            last = character
        }
        return false
    }

    /// The findings of a category; `place` is that of each.
    static func findings(of name: String, in bundle: AppBundle, place: String) -> [Finding] {
        (bundle.categories[name]?.actions ?? []).compactMap { action in
            guard !action.isDestructive else { return nil }
            let titles = bundle.languages.map { bundle.texts[$0]?[TextKey(action.title)]?.format ?? action.title }
            guard ([action.identifier, action.title] + titles).contains(where: looksDestructive) else { return nil }
            return Finding(
                .warning,
                place,
                "action \(action.identifier) of \(name) looks destructive: mark it with \"destructive\":true, and let the "
                    + "app ask before anything is deleted"
            )
        }
    }
}
