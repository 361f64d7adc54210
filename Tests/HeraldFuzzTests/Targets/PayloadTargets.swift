import Foundation
import HeraldModel

@testable import HeraldPhone

extension FuzzTarget {
    static let payload: [FuzzTarget] = [
        FuzzTarget("payload", upTo: 4096, payloadJSON)
    ]

    /// Payloads: the scanner and the reader beside Foundation's JSON.
    @Sendable
    private static func payloadJSON(_ bytes: [UInt8]) {
        let verdict = PayloadScanner.scan(bytes)
        let parsed = JSONComparison.parse(bytes)
        switch verdict {
        case .malformed(let place):
            check(place <= bytes.count, "a fault beyond the end")
            check(parsed == nil || !JSONComparison.isComparable(bytes), "Foundation reads what the scanner refuses")
        case .notAnObject, .object:
            check(
                parsed != nil || JSONComparison.isForeignToFoundation(bytes),
                "Foundation refuses what the scanner reads"
            )
        }
        if let parsed, case .object(let hasAps) = verdict, JSONComparison.isComparable(bytes) {
            let aps = (parsed as? [String: Any])?["aps"]
            check(parsed is [String: Any], "an object is none")
            // Of a repeated key the scanner takes the last.
            if hasAps { check(aps != nil, "an object without aps") }
        }
        if PayloadScanner.isSilent(bytes) { check(verdict == .object(hasAps: true), "silent without aps") }
        check(PayloadScanner.isSilent(bytes) == JSONComparison.isSilent(bytes), "the members of aps say otherwise")
        JSONComparison.compareValues(bytes, verdict)
    }
}

/// The allowed differences between the payload scanner and Foundation.
private enum JSONComparison {
    static func parse(_ bytes: [UInt8]) -> Any? {
        try? JSONSerialization.jsonObject(with: Data(bytes), options: [.fragmentsAllowed])
    }

    /// Foundation also reads UTF-16 and UTF-32, which it tells by zero bytes or a byte order mark, and skips that of UTF-8.
    ///
    /// It permits a comma after the last element.
    static func isComparable(_ bytes: [UInt8]) -> Bool {
        !bytes.contains(0) && !hasLastComma(bytes) && !bytes.starts(with: [0xEF, 0xBB, 0xBF])
            && !bytes.starts(with: [0xFF, 0xFE])
            && !bytes.starts(with: [0xFE, 0xFF])
    }

    private static func hasLastComma(_ bytes: [UInt8]) -> Bool {
        let dense = bytes.filter { $0 > 0x20 }
        return zip(dense, dense.dropFirst()).contains { comma, bracket in
            comma == UInt8(ascii: ",") && (bracket == UInt8(ascii: "]") || bracket == UInt8(ascii: "}"))
        }
    }

    /// Foundation refuses half a surrogate pair in escapes, more than 512 levels, and numbers that no `Double` holds.
    static func isForeignToFoundation(_ bytes: [UInt8]) -> Bool {
        let text = String(decoding: bytes, as: UTF8.self)
        let depth = bytes.count { $0 == UInt8(ascii: "[") || $0 == UInt8(ascii: "{") }
        return text.contains(#"\ud"#) || text.contains(#"\uD"#) || depth > 500 || hasLargeNumber(bytes)
    }

    private static func hasLargeNumber(_ bytes: [UInt8]) -> Bool {
        var digits = 0
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."): digits += 1
            case UInt8(ascii: "e"), UInt8(ascii: "E"): if digits > 0 { return true }
            default: digits = 0
            }
            if digits > 300 { return true }
        }
        return false
    }

    /// Whether the members that check and device read make a payload silent.
    static func isSilent(_ bytes: [UInt8]) -> Bool {
        guard case .object(let members, _) = PayloadReader.read(bytes), let aps = members["aps"]?.members else {
            return false
        }
        return aps["content-available"]?.isOne == true
            && ["alert", "badge", "sound"].allSatisfy { aps[$0] == nil || aps[$0] == .null }
    }

    /// The members, as the device's reader and Foundation's decoder have them.
    static func compareValues(_ bytes: [UInt8], _ verdict: PayloadScanner.Verdict) {
        let outcome = PayloadReader.read(bytes)
        switch (outcome, verdict) {
        case (.object(let members, let repeated), .object(let hasAps)):
            if hasAps, repeated.isEmpty { check(members["aps"]?.members != nil, "the reader finds no aps") }
            guard repeated.isEmpty, !isForeignToFoundation(bytes), isComparable(bytes), isFlat(members),
                let other = try? JSONDecoder().decode([String: PayloadValue].self, from: Data(bytes))
            else { return }
            check(members == other, "the reader and Foundation read other values")
        case (.notAnObject, .notAnObject): break
        case (.malformed(let left), .malformed(let right)): check(left == right, "the fault is elsewhere")
        default: check(false, "reader and scanner disagree")
        }
    }

    private static func isFlat(_ members: [String: PayloadValue]) -> Bool {
        members.values.allSatisfy(isRead)
    }

    private static func isRead(_ value: PayloadValue) -> Bool {
        switch value {
        case .unread: false
        case .array(let elements): elements.allSatisfy(isRead)
        case .object(let members): members.values.allSatisfy(isRead)
        default: true
        }
    }
}
