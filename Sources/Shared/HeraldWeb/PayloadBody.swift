import HeraldJSON

/// A payload in the body of a request: a JSON object, or a text with the payload byte for byte.
package struct PayloadBody: Decodable, Sendable {
    /// The payload; of an object its JSON on one line, with every number as it was written.
    package let bytes: [UInt8]

    package init(from decoder: any Decoder) throws {
        switch try JSON(from: decoder) {
        case .string(let text): bytes = Array(text.utf8)
        case .object(let members): bytes = JSON.object(members).bytes
        default:
            let key = decoder.codingPath.last?.stringValue ?? "payload"
            throw WebRefusal(400, "`\(key)` must be an object, or a text with the payload byte for byte")
        }
    }
}
