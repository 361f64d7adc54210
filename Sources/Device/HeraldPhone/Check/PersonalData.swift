import HeraldJSON

/// Finds data that should not be in a payload: personal data and secrets.
enum PersonalData {
    static let maximumFindings = 10

    /// The findings, at most one for each place.
    static func findings(in members: JSON.Object) -> [Finding] {
        var findings: [Finding] = []
        visit(.object(members), at: "", key: "", &findings)
        return findings
    }

    private static func visit(_ value: JSON, at place: String, key: String, _ findings: inout [Finding]) {
        guard findings.count < maximumFindings else { return }
        switch value {
        case .object(let members):
            for name in members.names.sorted() {
                guard let member = members[name] else { continue }
                visit(member, at: place.isEmpty ? name : "\(place).\(name)", key: name, &findings)
            }
        case .array(let elements):
            for element in elements { visit(element, at: place, key: key, &findings) }
        case .string, .number:
            let text = value.argument
            guard let kind = kind(of: text, under: key), !findings.contains(where: { $0.place == place }) else {
                return
            }
            findings.append(Finding(.warning, place, "looks like personal data: \(place) (\(kind))"))
        default: break
        }
    }

    /// The kind of data, with its article.
    private static func kind(of text: String, under key: String) -> String? {
        let words = text.split { $0.isWhitespace || "<>,;()\"'".contains($0) }
        if words.contains(where: isMailAddress) { return "an e-mail address" }
        if words.contains(where: { isAccountNumber($0) }) { return "an account number" }
        let digits = text.filter { $0.isASCII && $0.isNumber }
        let isNumber = text.allSatisfy { ($0.isASCII && $0.isNumber) || " -+()./".contains($0) }
        if isNumber, (15...19).contains(digits.count), "3456".contains(digits.prefix(1)), hasCheckDigit(digits) {
            return "a card number"
        }
        if isNumber, text.hasPrefix("+"), (8...15).contains(digits.count) { return "a telephone number" }
        let name = key.lowercased()
        let secrets = ["password", "passwd", "secret", "api-key", "api_key", "apikey", "access-token", "access_token"]
        if !text.isEmpty, secrets.contains(where: { name.contains($0) }) { return "a secret" }
        return nil
    }

    private static func isMailAddress(_ word: Substring) -> Bool {
        let parts = word.split(separator: "@", omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, let point = parts[1].lastIndex(of: ".") else { return false }
        return point > parts[1].startIndex && parts[1][point...].count > 2
    }

    /// An IBAN: two capital letters, two digits, and the remainder by 97 (ISO 13616).
    private static func isAccountNumber(_ word: Substring) -> Bool {
        guard (15...34).contains(word.count), word.allSatisfy({ $0.isASCII && ($0.isNumber || $0.isUppercase) }),
            word.prefix(2).allSatisfy(\.isLetter), word.dropFirst(2).prefix(2).allSatisfy(\.isNumber)
        else { return false }
        let remainder = (word.dropFirst(4) + word.prefix(4)).reduce(0) { remainder, character in
            guard let value = Int(String(character), radix: 36) else { return remainder }
            return (remainder * (value > 9 ? 100 : 10) + value) % 97
        }
        return remainder == 1
    }

    /// Luhn's check digit, which payment cards have (ISO/IEC 7812-1).
    private static func hasCheckDigit(_ digits: String) -> Bool {
        let sum = digits.reversed().enumerated().reduce(0) { sum, digit in
            let value = digit.element.wholeNumberValue ?? 0
            guard !digit.offset.isMultiple(of: 2) else { return sum + value }
            return sum + (value > 4 ? value * 2 - 9 : value * 2)
        }
        return sum.isMultiple(of: 10)
    }
}
