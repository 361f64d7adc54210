import HeraldModel

/// The stored text of a session: the JSON of its coding keys.
///
/// A store reads and writes it at each connection, and Foundation takes 60 µs for either. This code handles the plain form:
/// no white space, no escapes. Foundation handles every other form.
extension SessionRecord {
    /// The session in the plain form; nil if a filter needs JSON escapes, or if the session has apps of another
    /// environment.
    package var plainText: String? {
        guard environments == nil else { return nil }
        var text = "{"
        if let broadcasts {
            text += "\"broadcasts\":"
            guard PlainText.append(broadcasts, to: &text) else { return nil }
            text += ","
        }
        if let disconnected { text += "\"disconnected\":\(disconnected)," }
        text += "\"environment\":\"\(environment.rawValue)\",\"expiryInterval\":\(expiryInterval),\"subscriptions\":"
        guard PlainText.append(subscriptions, to: &text) else { return nil }
        if let tokenKey { text += ",\"tokenKey\":\(tokenKey)" }
        text += "}"
        return text
    }

    /// Reads the plain form; nil for any other text.
    package init?(plainText text: String) {
        var text = text
        let record = text.withUTF8 { bytes in
            var plain = PlainText(rest: bytes[...])
            return plain.session()
        }
        guard let record else { return nil }
        self = record
    }
}

/// Reads the plain form from its bytes; nil means another form.
private struct PlainText {
    var rest: Slice<UnsafeBufferPointer<UInt8>>

    /// Whether JSON needs no escape for a byte of a string.
    static func isPlain(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }

    /// Writes an object of numbers.
    /// - Returns: Whether no name needs escapes.
    static func append(_ numbers: [String: some FixedWidthInteger], to text: inout String) -> Bool {
        var isFirst = true
        text += "{"
        for (name, number) in numbers {
            guard name.utf8.allSatisfy(isPlain) else { return false }
            if !isFirst { text += "," }
            isFirst = false
            text += "\""
            text += name
            text += "\":\(number)"
        }
        text += "}"
        return true
    }

    mutating func session() -> SessionRecord? {
        var broadcasts: [String: UInt64]?
        var disconnected: Int64?
        var environment: PushEnvironment?
        var expiryInterval: UInt32?
        var subscriptions: [String: UInt8]?
        var tokenKey: UInt32?
        let isRead = object { plain, key in
            switch key {
            case "broadcasts":
                broadcasts = plain.numbers()
                return broadcasts != nil
            case "disconnected":
                disconnected = plain.integer()
                return disconnected != nil
            case "environment":
                environment = plain.string().flatMap { PushEnvironment(rawValue: $0) }
                return environment != nil
            case "expiryInterval":
                expiryInterval = plain.integer().flatMap { UInt32(exactly: $0) }
                return expiryInterval != nil
            case "subscriptions":
                subscriptions = plain.numbers()
                return subscriptions != nil
            case "tokenKey":
                tokenKey = plain.integer().flatMap { UInt32(exactly: $0) }
                return tokenKey != nil
            default:
                return false
            }
        }
        guard isRead, rest.isEmpty, let environment, let expiryInterval, let subscriptions else { return nil }
        var record = SessionRecord(
            subscriptions: subscriptions,
            expiryInterval: expiryInterval,
            environment: environment,
            disconnected: disconnected.map(WallTime.init(milliseconds:)),
            tokenKey: tokenKey
        )
        record.broadcasts = broadcasts
        return record
    }

    private mutating func numbers<Number: FixedWidthInteger>() -> [String: Number]? {
        var numbers: [String: Number] = [:]
        let isRead = object { plain, name in
            guard let number = plain.integer().flatMap({ Number(exactly: $0) }) else { return false }
            return numbers.updateValue(number, forKey: name) == nil
        }
        return isRead ? numbers : nil
    }

    /// Reads an object; `member` reads the value of a key and returns whether it could.
    private mutating func object(_ member: (inout PlainText, String) -> Bool) -> Bool {
        guard take("{") else { return false }
        if take("}") { return true }
        repeat {
            guard let key = string(), take(":"), member(&self, key) else { return false }
        } while take(",")
        return take("}")
    }

    private mutating func string() -> String? {
        guard take("\"") else { return nil }
        guard let end = rest.firstIndex(where: { !Self.isPlain($0) }), rest[end] == UInt8(ascii: "\"") else {
            return nil
        }
        let text = String(validating: rest[..<end], as: UTF8.self)
        rest = rest[(end + 1)...]
        return text
    }

    private mutating func integer() -> Int64? {
        let isNegative = take("-")
        let digits = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard !digits.isEmpty else { return nil }
        rest = rest[digits.endIndex...]
        var value: Int64 = 0
        for digit in digits {
            let (tens, overflows) = value.multipliedReportingOverflow(by: 10)
            let (sum, overflowsToo) = tens.subtractingReportingOverflow(Int64(digit - UInt8(ascii: "0")))
            guard !overflows, !overflowsToo else { return nil }
            value = sum
        }
        // Accumulated as a negative number, which reaches `Int64.min`.
        return isNegative ? value : value == .min ? nil : -value
    }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard rest.first == UInt8(ascii: character) else { return false }
        rest = rest.dropFirst()
        return true
    }
}
