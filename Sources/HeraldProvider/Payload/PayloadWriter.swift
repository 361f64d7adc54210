import Foundation
import HeraldModel

/// Writes one JSON object, compactly and in the given order.
struct PayloadWriter {
    private(set) var bytes = [UInt8(ascii: "{")]
    private var isEmpty = true

    /// The closed object.
    consuming func closed() -> [UInt8] {
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }

    mutating func write(_ name: String, _ text: String?) {
        guard let text else { return }
        key(name)
        Self.append(text, to: &bytes)
    }

    mutating func write(_ name: String, number: Int64?) {
        guard let number else { return }
        key(name)
        bytes.append(contentsOf: String(number).utf8)
    }

    /// Writes a number; throws if it is infinite or not a number.
    mutating func write(_ name: String, fraction number: Double?) throws {
        guard let number else { return }
        guard number.isFinite else { throw ProviderError(.badRequest, "\(name) is not a number") }
        key(name)
        let isWhole = number == number.rounded() && abs(number) < 1e15
        bytes.append(contentsOf: (isWhole ? "\(Int64(number))" : "\(number)").utf8)
    }

    mutating func write(_ name: String, flag: Bool) {
        if flag { write(name, number: Int64(1)) }
    }

    mutating func write(_ name: String, texts: [String]) {
        guard !texts.isEmpty else { return }
        key(name)
        for (index, text) in texts.enumerated() {
            bytes.append(UInt8(ascii: index == 0 ? "[" : ","))
            Self.append(text, to: &bytes)
        }
        bytes.append(UInt8(ascii: "]"))
    }

    /// Writes a value that is already JSON.
    mutating func write(_ name: String, json: [UInt8]?) {
        guard let json else { return }
        key(name)
        bytes.append(contentsOf: json)
    }

    /// Writes the members of an object that is already JSON.
    mutating func merge(_ object: [UInt8]) {
        let inner = object.dropFirst().dropLast()
        guard !inner.isEmpty else { return }
        if !isEmpty { bytes.append(UInt8(ascii: ",")) }
        isEmpty = false
        bytes.append(contentsOf: inner)
    }

    private mutating func key(_ name: String) {
        if !isEmpty { bytes.append(UInt8(ascii: ",")) }
        isEmpty = false
        Self.append(name, to: &bytes)
        bytes.append(UInt8(ascii: ":"))
    }

    /// Appends a JSON string (RFC 8259 §7).
    private static func append(_ text: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(byte)
            case 0..<0x20:
                bytes.append(contentsOf: "\\u00".utf8)
                bytes.append(Hex.lowerDigit(byte >> 4))
                bytes.append(Hex.lowerDigit(byte & 0xF))
            default:
                bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// A JSON string.
    static func text(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = []
        append(text, to: &bytes)
        return bytes
    }

    /// Encodes a value as a compact JSON object.
    static func object(_ value: some Encodable, _ what: String) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let json: [UInt8]
        do {
            json = Array(try encoder.encode(value))
        } catch {
            throw ProviderError(.badRequest, "\(what) cannot be written as JSON")
        }
        guard json.first == UInt8(ascii: "{") else {
            throw ProviderError(.badRequest, "\(what) must be a JSON object: a struct, or a dictionary with text keys")
        }
        return json
    }
}
