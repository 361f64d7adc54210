import Foundation

/// Fills parameters into a payload: `{{name}}` inside a JSON string becomes the parameter's text.
///
/// A string that is only `"{{name}}"` becomes the parameter as it is, so that a badge can be a number.
enum TemplateText {
    /// Reason for which a template cannot be filled.
    enum Failure: Error, Hashable {
        /// The parameters are not a JSON object of strings, numbers, booleans and nulls.
        case badParameters
        /// A parameter that the template names is missing.
        case missingParameter(String)
    }

    /// Reads the parameters of a row; empty if there are none.
    static func parameters(_ json: [UInt8]?) throws(Failure) -> [String: JSONScalar] {
        guard let json, !json.isEmpty else { return [:] }
        guard let values = try? JSONDecoder().decode([String: JSONScalar].self, from: Data(json)) else {
            throw .badParameters
        }
        return values
    }

    static func fill(_ template: String, _ parameters: [String: JSONScalar]) throws(Failure) -> [UInt8] {
        var filled: [UInt8] = []
        let bytes = Array(template.utf8)
        var rest = bytes[...]
        let (open, close) = (Array("{{".utf8), Array("}}".utf8))
        while let start = rest.firstRange(of: open)?.lowerBound {
            guard let end = rest[start...].firstRange(of: close) else { break }
            let name = String(decoding: rest[(start + 2)..<end.lowerBound], as: UTF8.self)
                .trimmingCharacters(in: .whitespaces)
            // `}}` also ends objects. JSON has `{{` only inside strings. Other characters make it no parameter.
            guard !name.isEmpty, name.utf8.allSatisfy(isOfName) else {
                filled += rest[..<(start + 2)]
                rest = rest[(start + 2)...]
                continue
            }
            guard let value = parameters[name] else { throw .missingParameter(name) }
            let quote = UInt8(ascii: "\"")
            let isWhole =
                start > rest.startIndex && rest[start - 1] == quote && isOpening(bytes, at: start - 1)
                && end.upperBound < rest.endIndex && rest[end.upperBound] == quote
            if isWhole {
                filled += rest[..<(start - 1)]
                filled += value.json
                rest = rest[(end.upperBound + 1)...]
            } else {
                filled += rest[..<start]
                filled += value.quoted.dropFirst().dropLast()
                rest = rest[end.upperBound...]
            }
        }
        return filled + rest
    }

    /// Whether the quotation mark at an index begins a string, and is not escaped.
    private static func isOpening(_ bytes: [UInt8], at index: Int) -> Bool {
        index == 0 || bytes[index - 1] != UInt8(ascii: "\\")
    }

    private static func isOfName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."):
            true
        default: false
        }
    }
}

/// A JSON value that is neither an object nor an array.
enum JSONScalar: Hashable, Sendable, Decodable {
    case text(String)
    case integer(Int64)
    case number(Double)
    case flag(Bool)
    case null

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let flag = try? container.decode(Bool.self) {
            self = .flag(flag)
        } else if let integer = try? container.decode(Int64.self) {
            self = .integer(integer)
        } else if let number = try? container.decode(Double.self) {
            self = .number(number)
        } else {
            self = .text(try container.decode(String.self))
        }
    }

    /// The value in JSON.
    var json: [UInt8] {
        switch self {
        case .text: quoted
        default: Array(plain.utf8)
        }
    }

    /// The value as a JSON string, with quotation marks.
    var quoted: [UInt8] {
        var bytes: [UInt8] = [UInt8(ascii: "\"")]
        for byte in plain.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
            case 0..<0x20: bytes += Array("\\u00\(byte < 16 ? "0" : "")\(String(byte, radix: 16))".utf8)
            default: bytes.append(byte)
            }
        }
        return bytes + [UInt8(ascii: "\"")]
    }

    private var plain: String {
        switch self {
        case .text(let text): text
        case .integer(let number): String(number)
        case .number(let number): String(number)
        case .flag(let flag): flag ? "true" : "false"
        case .null: "null"
        }
    }
}
