import HeraldJSON

/// Reads string catalogs (`Localizable.xcstrings`): JSON with the texts of all languages.
enum StringCatalog {
    struct Content {
        /// The source language.
        var source = "en"
        /// The texts by language and key.
        var languages: [String: [TextKey: LocalizedText]] = [:]
        /// The keys that need no translation, or are not used any more.
        var untranslated: Set<TextKey> = []
    }

    /// Reads a catalog.
    /// - Throws: ``BundleError``.
    static func read(_ bytes: [UInt8], file: String, limits: BundleLimits = BundleLimits()) throws -> Content {
        guard let catalog = JSON.Object(bytes, rules: .lenient) else { throw BundleError(file, "is not JSON") }
        guard let strings = catalog["strings"]?.members else {
            throw BundleError(file, "is not a string catalog: it has no strings")
        }
        var content = Content()
        content.source = catalog["sourceLanguage"]?.text ?? content.source
        content.languages[content.source] = [:]
        var room = TextRoom(bytes: limits.fileBytes, file: file)
        for (name, entry) in strings {
            let key = TextKey(name)
            let isStale = entry.members?["extractionState"]?.text == "stale"
            if isStale || entry.members?["shouldTranslate"] == .boolean(false) { content.untranslated.insert(key) }
            let translations = entry.members?["localizations"]?.members ?? [:]
            for (language, translation) in translations {
                guard let text = text(translation) else { continue }
                try room.take(text)
                content.languages[language, default: [:]][key] = text
            }
            // An untranslated text is its own key.
            let source = content.source
            if content.languages[source]?[key] == nil { content.languages[source]?[key] = LocalizedText(format: name) }
        }
        return content
    }

    /// The text, or the most general of its variations, with its substitutions.
    private static func text(_ translation: JSON) -> LocalizedText? {
        guard let form = form(translation) else { return nil }
        guard form.isPlural || form.substitutions != nil else { return LocalizedText(format: form.format) }
        return FormatVariables.replaced(in: form.format, readsArg: true) { name in
            guard let substitution = form.substitutions?[name], let text = self.form(substitution)?.format else {
                return nil
            }
            return FormatVariables.Variable(text: text, position: substitution.members?["argNum"]?.integer)
        }
    }

    /// The format string of a translation or a substitution, and the substitutions beside it.
    private static func form(
        _ translation: JSON,
        isPlural: Bool = false
    ) -> (format: String, isPlural: Bool, substitutions: JSON.Object?)? {
        let members = translation.members
        let substitutions = members?["substitutions"]?.members
        if let unit = members?["stringUnit"]?.members {
            return unit["value"]?.text.map { ($0, isPlural, substitutions) }
        }
        let variations = members?["variations"]?.members
        let form: (format: String, isPlural: Bool, substitutions: JSON.Object?)?
        if let other = variations?["plural"]?.members?["other"] {
            form = self.form(other, isPlural: true)
        } else if let devices = variations?["device"]?.members, let device = devices["iphone"] ?? devices["other"] {
            form = self.form(device, isPlural: isPlural)
        } else {
            return nil
        }
        return form.map { ($0.format, $0.isPlural, $0.substitutions ?? substitutions) }
    }
}

/// Reads plurals (`Localizable.stringsdict`).
enum PluralFile {
    /// Reads the texts by key, with each variable in its most general form.
    static func read(
        _ members: JSON.Object,
        file: String,
        limits: BundleLimits = BundleLimits()
    ) throws -> [TextKey: LocalizedText] {
        var room = TextRoom(bytes: limits.fileBytes, file: file)
        var texts: [TextKey: LocalizedText] = [:]
        for (key, entry) in members {
            guard let entry = entry.members else { throw BundleError(file, "\(key) is not a dictionary") }
            // Width variants have no format. Notifications do not use them.
            guard let format = entry["NSStringLocalizedFormatKey"]?.text else { continue }
            let text = FormatVariables.replaced(in: format) { name in
                entry[name]?.members?["other"]?.text.map { FormatVariables.Variable(text: $0) }
            }
            try room.take(text)
            texts[TextKey(key)] = text
        }
        return texts
    }
}

/// Limits the texts of a file, which its variables can make much longer than the file.
private struct TextRoom {
    var bytes: Int
    let file: String

    mutating func take(_ text: LocalizedText) throws {
        bytes -= text.format.utf8.count
        guard bytes >= 0 else { throw BundleError(file, "has texts that its variables make too long") }
    }
}
