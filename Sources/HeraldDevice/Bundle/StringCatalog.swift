/// Reads string catalogs (`Localizable.xcstrings`): JSON with all languages of a table.
enum StringCatalog {
    /// The texts of each language by their keys, and the language that the keys are written in.
    /// - Throws: ``BundleError``.
    static func read(
        _ bytes: [UInt8],
        file: String
    ) throws -> (source: String, languages: [String: [String: LocalizedText]]) {
        guard case .object(let catalog, _) = PayloadReader.read(bytes) else { throw BundleError(file, "is not JSON") }
        guard let strings = catalog["strings"]?.members else {
            throw BundleError(file, "is not a string catalog: it has no strings")
        }
        let source = catalog["sourceLanguage"]?.text ?? "en"
        var languages: [String: [String: LocalizedText]] = [source: [:]]
        for (key, entry) in strings {
            let translations = entry.members?["localizations"]?.members ?? [:]
            for (language, translation) in translations {
                if let text = text(translation) { languages[language, default: [:]][key] = text }
            }
            // A text that was never translated is its own key.
            if languages[source]?[key] == nil { languages[source]?[key] = LocalizedText(format: key) }
        }
        return (source, languages)
    }

    /// The text itself, or the most general of its variations.
    private static func text(_ translation: PayloadValue, isPlural: Bool = false) -> LocalizedText? {
        if let unit = translation.members?["stringUnit"]?.members {
            return unit["value"]?.text.map { LocalizedText(format: $0, isPlural: isPlural) }
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
}

/// Reads plurals (`Localizable.stringsdict`).
enum PluralFile {
    /// The texts by their keys, each with its variables in their most general form.
    static func read(_ members: [String: PayloadValue], file: String) throws -> [String: LocalizedText] {
        var texts: [String: LocalizedText] = [:]
        for (key, entry) in members {
            guard let entry = entry.members else { throw BundleError(file, "\(key) is not a dictionary") }
            // Texts by width have no format; they are not for notifications.
            guard let format = entry["NSStringLocalizedFormatKey"]?.text else { continue }
            texts[key] = LocalizedText(format: filled(format, from: entry), isPlural: true)
        }
        return texts
    }

    /// Replaces `%#@files@` by the form `other` of that variable, with `%@` where its number stands.
    private static func filled(_ format: String, from entry: [String: PayloadValue]) -> String {
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
                let variable = entry[String(cursor.dropFirst(2)[..<end])]?.members,
                let other = variable["other"]?.text
            else {
                // A percent sign and what it is for; "%%" must not be taken for the begin of something.
                let piece = rest.prefix(2)
                text += piece
                rest = rest.dropFirst(piece.count)
                continue
            }
            let number = "%" + (variable["NSStringFormatValueTypeKey"]?.text ?? "d")
            text += replacing(number, by: "%\(position)@", in: other)
            rest = rest[cursor.index(after: end)...]
        }
        return text + rest
    }

    private static func replacing(_ pattern: String, by replacement: String, in text: String) -> String {
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
