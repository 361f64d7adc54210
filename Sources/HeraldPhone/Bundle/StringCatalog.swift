import HeraldJSON

/// Reads string catalogs (`Localizable.xcstrings`): JSON with the texts of all languages.
enum StringCatalog {
    /// The content of a catalog.
    struct Content {
        /// The source language.
        var source = "en"
        /// The texts by language and key.
        var languages: [String: [String: LocalizedText]] = [:]
        /// The keys that need no translation, or are not used any more.
        var untranslated: Set<String> = []
    }

    /// Reads a catalog.
    /// - Throws: ``BundleError``.
    static func read(_ bytes: [UInt8], file: String) throws -> Content {
        guard let catalog = JSON.Object(bytes, rules: .lenient) else { throw BundleError(file, "is not JSON") }
        guard let strings = catalog["strings"]?.members else {
            throw BundleError(file, "is not a string catalog: it has no strings")
        }
        var content = Content()
        content.source = catalog["sourceLanguage"]?.text ?? content.source
        content.languages[content.source] = [:]
        for (key, entry) in strings {
            let isStale = entry.members?["extractionState"]?.text == "stale"
            if isStale || entry.members?["shouldTranslate"] == .boolean(false) { content.untranslated.insert(key) }
            let translations = entry.members?["localizations"]?.members ?? [:]
            for (language, translation) in translations {
                if let text = text(translation) { content.languages[language, default: [:]][key] = text }
            }
            // An untranslated text is its own key.
            let source = content.source
            if content.languages[source]?[key] == nil { content.languages[source]?[key] = LocalizedText(format: key) }
        }
        return content
    }

    /// The text, or the most general of its variations.
    private static func text(_ translation: JSON, isPlural: Bool = false) -> LocalizedText? {
        if let unit = translation.members?["stringUnit"]?.members {
            guard let format = unit["value"]?.text else { return nil }
            guard let substitutions = translation.members?["substitutions"]?.members else {
                return LocalizedText(format: format, isPlural: isPlural)
            }
            return LocalizedText(
                format: PluralFile.filled(format) { form(substitutions[$0], at: $1) },
                isPlural: true
            )
        }
        guard let variations = translation.members?["variations"]?.members else { return nil }
        if let forms = variations["plural"]?.members, let other = forms["other"] {
            return text(other, isPlural: true)
        }
        guard let devices = variations["device"]?.members, let device = devices["iphone"] ?? devices["other"] else {
            return nil
        }
        return text(device, isPlural: isPlural)
    }

    /// The most general form of the substitution `%#@name@`, with `%@` in place of `%arg`.
    private static func form(_ substitution: JSON?, at position: String) -> String? {
        guard let substitution, let form = text(substitution)?.format else { return nil }
        let number = substitution.members?["argNum"]?.integer.map { "\($0)$" } ?? position
        return PluralFile.replacing("%arg", by: "%\(number)@", in: form)
    }
}

/// Reads plurals (`Localizable.stringsdict`).
enum PluralFile {
    /// Reads the texts by key, with each variable in its most general form.
    static func read(_ members: JSON.Object, file: String) throws -> [String: LocalizedText] {
        var texts: [String: LocalizedText] = [:]
        for (key, entry) in members {
            guard let entry = entry.members else { throw BundleError(file, "\(key) is not a dictionary") }
            // Width variants have no format. Notifications do not use them.
            guard let format = entry["NSStringLocalizedFormatKey"]?.text else { continue }
            let filled = filled(format) { name, position in
                guard let variable = entry[name]?.members, let other = variable["other"]?.text else { return nil }
                let number = "%" + (variable["NSStringFormatValueTypeKey"]?.text ?? "d")
                return replacing(number, by: "%\(position)@", in: other)
            }
            texts[key] = LocalizedText(format: filled, isPlural: true)
        }
        return texts
    }

    /// Replaces `%#@files@` by the result of `form` for the name and position (`2$`, or empty).
    static func filled(_ format: String, form: (_ name: String, _ position: String) -> String?) -> String {
        var text = ""
        var rest = Substring(format)
        while let percent = rest.firstIndex(of: "%") {
            text += rest[..<percent]
            rest = rest[percent...]
            var cursor = rest.dropFirst()
            let digits = cursor.prefix { $0.isASCII && $0.isNumber }
            var position = ""
            if !digits.isEmpty, cursor.dropFirst(digits.count).first == "$" {
                position = "\(digits)$"
                cursor = cursor.dropFirst(digits.count + 1)
            }
            guard cursor.hasPrefix("#@"), let end = cursor.dropFirst(2).firstIndex(of: "@"),
                let replacement = form(String(cursor.dropFirst(2)[..<end]), position)
            else {
                // Copies the percent sign and the next character, so that "%%" does not begin a conversion.
                let piece = rest.prefix(2)
                text += piece
                rest = rest.dropFirst(piece.count)
                continue
            }
            text += replacement
            rest = rest[cursor.index(after: end)...]
        }
        return text + rest
    }

    static func replacing(_ pattern: String, by replacement: String, in text: String) -> String {
        var result = ""
        var rest = Substring(text)
        while let percent = rest.firstIndex(of: "%") {
            result += rest[..<percent]
            rest = rest[percent...]
            if rest.hasPrefix(pattern) {
                result += replacement
                rest = rest.dropFirst(pattern.count)
            } else {
                let piece = rest.prefix(2)
                result += piece
                rest = rest.dropFirst(piece.count)
            }
        }
        return result + rest
    }
}
