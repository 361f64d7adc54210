/// Checks in one pass whether a payload is a JSON object (RFC 8259).
///
/// It runs for every notification, and takes a tenth of Foundation's time: no allocation up to 64 levels, and no recursion,
/// so that only the payload's size limits the depth.
package enum PayloadScanner {
    /// The kind of a payload.
    package enum Verdict: Hashable, Sendable {
        /// A JSON object; `hasAps` tells whether it has an object under the key `aps` at its top level.
        case object(hasAps: Bool)
        /// Well-formed JSON of another kind (an array, a string, …).
        case notAnObject
        /// Not JSON, or not UTF-8, from this byte on.
        case malformed(at: Int)
    }

    /// Scans a whole payload.
    package static func scan(_ payload: UnsafeRawBufferPointer) -> Verdict {
        var scan = JSONScan(bytes: payload)
        return scan.run()
    }

    /// Scans a whole payload.
    package static func scan(_ payload: [UInt8]) -> Verdict {
        payload.withUnsafeBytes { scan($0) }
    }

    /// Whether a payload only wakes its app: `aps` has `content-available`, the number 1, and no `alert`, `badge` or `sound`.
    ///
    /// This identifies a background notification without `apns-push-type`. It is the one definition for all of Herald:
    ///
    /// - 1 is the number, however it is written: `1.0` and `10e-1` too, but neither `true` nor `"1"`.
    /// - `null` counts as absent, and every other value as present: also `""`, `{}`, and a badge of 0, which removes one.
    /// - Of members with the same key the last counts, and escapes in keys do not matter (RFC 8259 §8.3).
    package static func isSilent(_ payload: [UInt8]) -> Bool {
        survey(payload).isSilent
    }

    /// Scans a whole payload for all that decides its way.
    package static func survey(_ payload: [UInt8]) -> Survey {
        payload.withUnsafeBytes { bytes in
            var scan = JSONScan(bytes: bytes)
            let verdict = scan.run()
            let isSilent = verdict == .object(hasAps: true) && scan.aps == .contentAvailable
            return Survey(verdict: verdict, isSilent: isSilent, hasHerald: scan.hasHerald)
        }
    }

    /// The facts about a payload that decide its way.
    package struct Survey {
        package let verdict: Verdict
        /// Whether the payload only wakes its app; see ``PayloadScanner/isSilent(_:)``.
        package let isSilent: Bool
        /// Whether the payload has a member `herald` at its top level.
        package let hasHerald: Bool

        package var isObject: Bool {
            if case .object = verdict { true } else { false }
        }
    }
}

/// The members of `aps` that tell whether a payload is silent.
private struct ApsMembers: OptionSet {
    let rawValue: UInt8

    /// The number 1.
    static let contentAvailable = ApsMembers(rawValue: 1)
    static let alert = ApsMembers(rawValue: 2)
    static let badge = ApsMembers(rawValue: 4)
    static let sound = ApsMembers(rawValue: 8)
}

/// One pass over one document: a position, and a stack of one bit per open bracket.
private struct JSONScan {
    let bytes: UnsafeRawBufferPointer
    var position = 0
    var depth = 0
    /// Bit `n` of word `n / 64`: whether the bracket open at that depth is an object's.
    var innerLevels: UInt64 = 0
    var outerLevels: [UInt64] = []
    var hasAps = false
    /// Whether a key at the top level was `herald`.
    private(set) var hasHerald = false
    /// Whether the innermost key at the top level was `aps`.
    private var isInAps = false
    /// The members of the last `aps` that tell whether it is silent.
    private(set) var aps: ApsMembers = []
    /// Whether the string that was read last has an escape.
    private var hasEscape = false

    init(bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
    }

    mutating func run() -> PayloadScanner.Verdict {
        skipSpace()
        let isObject = peek() == UInt8(ascii: "{")
        guard value() else { return .malformed(at: position) }
        skipSpace()
        guard position == bytes.count else { return .malformed(at: position) }
        return isObject ? .object(hasAps: hasAps) : .notAnObject
    }

    /// Reads one value with all of its members.
    ///
    /// After each member the position is deeper, at a comma, or at a closing bracket.
    private mutating func value() -> Bool {
        var expectsValue = true
        while true {
            if expectsValue {
                skipSpace()
                guard let byte = peek() else { return false }
                switch byte {
                case UInt8(ascii: "{"):
                    position += 1
                    push(isObject: true)
                    skipSpace()
                    if peek() == UInt8(ascii: "}") {
                        position += 1
                        pop()
                        expectsValue = false
                    } else {
                        guard key() else { return false }
                    }
                case UInt8(ascii: "["):
                    position += 1
                    push(isObject: false)
                    skipSpace()
                    if peek() == UInt8(ascii: "]") {
                        position += 1
                        pop()
                        expectsValue = false
                    }
                default:
                    guard scalar(byte) else { return false }
                    expectsValue = false
                }
            } else {
                guard depth > 0 else { return true }
                skipSpace()
                guard let byte = peek() else { return false }
                let inObject = innerLevels & 1 == 1
                switch byte {
                case UInt8(ascii: ","):
                    position += 1
                    if inObject {
                        skipSpace()
                        guard key() else { return false }
                    }
                    expectsValue = true
                case UInt8(ascii: "}") where inObject, UInt8(ascii: "]") where !inObject:
                    position += 1
                    pop()
                default:
                    return false
                }
            }
        }
    }

    /// Reads `"key" :` and notices `aps` and `herald` at the top.
    private mutating func key() -> Bool {
        let start = position
        guard peek() == UInt8(ascii: "\""), string() else { return false }
        let length = position - start
        skipSpace()
        guard peek() == UInt8(ascii: ":") else { return false }
        position += 1
        if depth == 2, isInAps { note(start..<start + length) }
        guard depth == 1 else { return true }
        isInAps = false
        if isKey("aps", start..<start + length) {
            skipSpace()
            hasAps = peek() == UInt8(ascii: "{")
            isInAps = hasAps
            aps = []
        } else if isKey("herald", start..<start + length) {
            hasHerald = true
        }
        return true
    }

    /// Notes a key of `aps` that tells the push type; the position is behind its colon.
    private mutating func note(_ key: Range<Int>) {
        guard let member = member(key) else { return }
        skipSpace()
        // Of several values the last counts.
        let counts = member == .contentAvailable ? isOne : peek() != UInt8(ascii: "n")
        if counts { aps.insert(member) } else { aps.remove(member) }
    }

    private func member(_ key: Range<Int>) -> ApsMembers? {
        if isKey("alert", key) { return .alert }
        if isKey("badge", key) { return .badge }
        if isKey("sound", key) { return .sound }
        return isKey("content-available", key) ? .contentAvailable : nil
    }

    /// Whether the key that was just read, with its quotes, is a text of ASCII without escapes.
    private func isKey(_ text: StaticString, _ key: Range<Int>) -> Bool {
        let inside = key.lowerBound + 1..<key.upperBound - 1
        let count = text.utf8CodeUnitCount
        guard inside.count == count else { return hasEscape && inside.count > count && isEscapedKey(text, inside) }
        for offset in 0..<count where bytes[inside.lowerBound + offset] != text.utf8Start[offset] { return false }
        return true
    }

    /// Whether a key with escapes spells a text of ASCII; of its characters only `\u` can escape.
    private func isEscapedKey(_ text: StaticString, _ inside: Range<Int>) -> Bool {
        var place = inside.lowerBound
        for offset in 0..<text.utf8CodeUnitCount {
            guard place < inside.upperBound else { return false }
            var unit = UInt32(bytes[place])
            place += 1
            if unit == UInt8(ascii: "\\") {
                guard inside.upperBound - place >= 5, bytes[place] == UInt8(ascii: "u") else { return false }
                unit = bytes[place + 1..<place + 5].reduce(0) { $0 << 4 | UInt32(Hex.value(of: $1) ?? 0) }
                place += 5
            }
            guard unit == text.utf8Start[offset] else { return false }
        }
        return place == inside.upperBound
    }

    /// Whether the value at the position is the number 1.
    private var isOne: Bool {
        let isOfNumber: (UInt8) -> Bool = { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."),
                UInt8(ascii: "e"), UInt8(ascii: "E"):
                true
            default: false
            }
        }
        guard let first = peek(), isOfNumber(first) else { return false }
        let number = bytes[position...].prefix(while: isOfNumber)
        if number.count == 1 { return first == UInt8(ascii: "1") }
        return Double(String(decoding: number, as: UTF8.self)) == 1
    }

    private mutating func scalar(_ first: UInt8) -> Bool {
        switch first {
        case UInt8(ascii: "\""): string()
        case UInt8(ascii: "t"): literal("true")
        case UInt8(ascii: "f"): literal("false")
        case UInt8(ascii: "n"): literal("null")
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): number()
        default: false
        }
    }

    private mutating func literal(_ text: StaticString) -> Bool {
        let count = text.utf8CodeUnitCount
        guard bytes.count - position >= count else { return false }
        for offset in 0..<count where bytes[position + offset] != text.utf8Start[offset] { return false }
        position += count
        return true
    }

    /// RFC 8259 §6: no leading zero, no bare point, no empty exponent.
    private mutating func number() -> Bool {
        if peek() == UInt8(ascii: "-") { position += 1 }
        if peek() == UInt8(ascii: "0") {
            position += 1
        } else if !digits() {
            return false
        }
        if peek() == UInt8(ascii: ".") {
            position += 1
            guard digits() else { return false }
        }
        if peek() == UInt8(ascii: "e") || peek() == UInt8(ascii: "E") {
            position += 1
            if peek() == UInt8(ascii: "+") || peek() == UInt8(ascii: "-") { position += 1 }
            guard digits() else { return false }
        }
        return true
    }

    private mutating func digits() -> Bool {
        let start = position
        while let byte = peek(), (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
        return position > start
    }

    /// RFC 8259 §7, with eight bytes at a time where they are all plain ASCII.
    private mutating func string() -> Bool {
        hasEscape = false
        position += 1
        while position < bytes.count {
            if bytes.count - position >= 8 {
                let word = bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self)
                if JSONScan.isPlain(word) {
                    position += 8
                    continue
                }
            }
            let byte = bytes[position]
            switch byte {
            case UInt8(ascii: "\""):
                position += 1
                return true
            case UInt8(ascii: "\\"):
                guard escape() else { return false }
                hasEscape = true
            case 0..<0x20:
                return false
            case 0x20..<0x80:
                position += 1
            default:
                guard multibyte(byte) else { return false }
            }
        }
        return false
    }

    /// Whether none of eight bytes is a control character, a quote, a backslash, or beyond ASCII.
    private static func isPlain(_ word: UInt64) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let highs: UInt64 = 0x8080_8080_8080_8080
        let quotes = word ^ (ones &* 0x22)
        let backslashes = word ^ (ones &* 0x5C)
        let controls = word &- (ones &* 0x20)
        let found = (quotes &- ones) & ~quotes | (backslashes &- ones) & ~backslashes | controls & ~word | word
        return found & highs == 0
    }

    private mutating func escape() -> Bool {
        guard bytes.count - position >= 2 else { return false }
        switch bytes[position + 1] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            position += 2
            return true
        case UInt8(ascii: "u"):
            guard bytes.count - position >= 6 else { return false }
            for offset in 2..<6 where Hex.value(of: bytes[position + offset]) == nil { return false }
            position += 6
            return true
        default:
            return false
        }
    }

    /// One character beyond ASCII, well-formed as Unicode's table 3-7 has it: no overlong form, no surrogate.
    private mutating func multibyte(_ first: UInt8) -> Bool {
        let length: Int
        var second: ClosedRange<UInt8> = 0x80...0xBF
        switch first {
        case 0xC2...0xDF: length = 2
        case 0xE0: (length, second) = (3, 0xA0...0xBF)
        case 0xED: (length, second) = (3, 0x80...0x9F)
        case 0xE1...0xEF: length = 3
        case 0xF0: (length, second) = (4, 0x90...0xBF)
        case 0xF1...0xF3: length = 4
        case 0xF4: (length, second) = (4, 0x80...0x8F)
        default: return false
        }
        guard bytes.count - position >= length, second.contains(bytes[position + 1]) else { return false }
        for offset in stride(from: 2, to: length, by: 1) where !(0x80...0xBF).contains(bytes[position + offset]) {
            return false
        }
        position += length
        return true
    }

    private func peek() -> UInt8? {
        position < bytes.count ? bytes[position] : nil
    }

    private mutating func skipSpace() {
        while let byte = peek(), byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }

    private mutating func push(isObject: Bool) {
        if depth > 0, depth % 64 == 0 {
            outerLevels.append(innerLevels)
            innerLevels = 0
        }
        innerLevels = innerLevels << 1 | (isObject ? 1 : 0)
        depth += 1
    }

    private mutating func pop() {
        depth -= 1
        innerLevels >>= 1
        if depth > 0, depth % 64 == 0, let outer = outerLevels.popLast() {
            innerLevels = outer
        }
    }
}
