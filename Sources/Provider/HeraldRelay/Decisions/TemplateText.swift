import Foundation
import HeraldJSON
import HeraldModel

/// Fills parameters into a template, which is JSON: `{{name}}` inside a string becomes the parameter's text.
///
/// A string that is only `"{{name}}"` becomes the parameter as it is, so that a badge can be a number. Numbers keep their
/// digits.
struct TemplateText {
    /// Reason for which a template cannot be filled.
    enum Failure: Error, Hashable {
        /// The parameters are not a JSON object of strings, numbers, booleans and nulls.
        case badParameters
        /// The template is not JSON.
        case badTemplate
        /// A parameter that the template names is missing.
        case missingParameter(String)
    }

    private let parameters: JSON.Object

    /// Reads the parameters of a row; empty if there are none.
    static func parameters(_ json: [UInt8]?) throws(Failure) -> JSON.Object {
        guard let json, !json.isEmpty else { return [:] }
        guard let values = JSON.Object(json), values.allSatisfy({ $0.value.members == nil && $0.value.elements == nil })
        else { throw .badParameters }
        return values
    }

    static func fill(_ template: String, _ parameters: JSON.Object) throws(Failure) -> [UInt8] {
        guard let json = try? JSON(Array(template.utf8)) else { throw .badTemplate }
        return try TemplateText(parameters: parameters).filled(json).bytes
    }

    private func filled(_ json: JSON) throws(Failure) -> JSON {
        switch json {
        case .string(let text): return try filled(text)
        case .array(let elements): return .array(try elements.map { element throws(Failure) in try filled(element) })
        case .object(let members):
            var object = JSON.Object()
            for (name, value) in members { object[Self.text(try filled(name))] = try filled(value) }
            return .object(object)
        default: return json
        }
    }

    private func filled(_ text: String) throws(Failure) -> JSON {
        var filled = ""
        var rest = Array(text.utf8)[...]
        while let open = rest.firstRange(of: "{{".utf8), let close = rest[open.upperBound...].firstRange(of: "}}".utf8)
        {
            let name = String(decoding: rest[open.upperBound..<close.lowerBound], as: UTF8.self)
                .trimmingCharacters(in: .whitespaces)
            // Braces around anything but a name are text.
            guard !name.isEmpty, name.utf8.allSatisfy({ $0.isASCIINameByte }) else {
                filled += String(decoding: rest[..<open.upperBound], as: UTF8.self)
                rest = rest[open.upperBound...]
                continue
            }
            guard let value = parameters[name] else { throw .missingParameter(name) }
            if open.lowerBound == 0, close.upperBound == rest.endIndex { return value }
            filled += String(decoding: rest[..<open.lowerBound], as: UTF8.self) + Self.text(value)
            rest = rest[close.upperBound...]
        }
        return .string(filled + String(decoding: rest, as: UTF8.self))
    }

    /// The text of a value within a longer one.
    private static func text(_ value: JSON) -> String { value.text ?? value.description }
}
