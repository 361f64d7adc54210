import Foundation
import HeraldJSON
import HeraldModel

@testable import HeraldPhone

extension FuzzTarget {
    static let payload: [FuzzTarget] = [
        FuzzTarget("payload", upTo: 4096, payloadJSON)
    ]

    /// Payloads: the scanner and the tree beside Foundation's JSON.
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
        JSONComparison.compareValues(bytes, verdict, parsed)
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
        guard let aps = JSON.Object(bytes, rules: .lenient)?["aps"]?.members else { return false }
        return aps["content-available"]?.isOne == true
            && ["alert", "badge", "sound"].allSatisfy { aps[$0] == nil || aps[$0] == .null }
    }

    /// The tree beside the scanner and Foundation, and its text beside itself.
    static func compareValues(_ bytes: [UInt8], _ verdict: PayloadScanner.Verdict, _ parsed: Any?) {
        do throws(JSON.Failure) {
            let (json, repeated) = try JSON.listingRepeatedNames(bytes)
            if case .malformed = verdict { check(false, "the tree is read, and the scanner refuses") }
            check((json.members != nil) == (verdict != .notAnObject), "tree and scanner disagree about an object")
            if verdict == .object(hasAps: true), repeated.isEmpty {
                check(json.members?["aps"]?.members != nil, "the tree has no aps")
            }
            let written = json.bytes
            check(!written.contains { $0 < 0x20 }, "a text of more than one line")
            let again = try JSON(written)
            check(again == json && again.bytes == written, "what was written is read in another way")
            if let strict = try? JSON(bytes) {
                check(strict == json && repeated.isEmpty, "strict and lenient rules read other values")
            }
            guard repeated.isEmpty, !isForeignToFoundation(bytes), isComparable(bytes), let parsed else { return }
            check(isEqual(json, parsed), "the tree and Foundation have other values")
        } catch {
            switch error.reason {
            case .malformed, .notUTF8:
                guard case .malformed = verdict else { return check(false, "the tree is refused: \(error)") }
            case .tooDeep: break
            default: check(false, "lenient rules refuse: \(error)")
            }
            check(error.position <= bytes.count, "a fault beyond the end")
        }
    }

    private static func isEqual(_ json: JSON, _ other: Any) -> Bool {
        switch json {
        case .null: return other is NSNull
        case .boolean(let truth): return other as? Bool == truth
        case .number(let number):
            guard let double = number.double, let foreign = other as? NSNumber else { return false }
            // An integer of Foundation is exact.
            if let integer = other as? Int, number.exactly(Int.self) == integer { return true }
            // Of a number with more than 16 digits, Foundation makes a decimal, and of that a `Double` that is a little wrong.
            return abs(double - foreign.doubleValue) <= (foreign is NSDecimalNumber ? 64 * double.ulp : 0)
        case .string(let text): return other as? String == text
        case .array(let elements):
            guard let others = other as? [Any], others.count == elements.count else { return false }
            return zip(elements, others).allSatisfy(isEqual)
        case .object(let members):
            guard let others = other as? [String: Any] else { return false }
            // A dictionary of Swift has one key for canonically equivalent names.
            guard others.count == members.count else { return others.count < members.count }
            return members.allSatisfy { name, value in others[name].map { isEqual(value, $0) } ?? false }
        }
    }
}
