import HeraldWeb

/// A payload to look at.
package struct PayloadQuestion: Decodable, Sendable {
    /// The most languages of a preview.
    package static let maximumLanguages = 16

    /// The text if the payload is a JSON string, else the JSON object.
    package let payload: [UInt8]
    /// `apns-push-type`; nil for an alert.
    package let pushType: String?
    /// The user's languages; nil for English.
    package let languages: [String]?

    private enum CodingKeys: String, CodingKey {
        case payload, languages
        case pushType = "push_type"
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        payload = try container.decode(PayloadBody.self, forKey: .payload).bytes
        pushType = try container.decodeIfPresent(String.self, forKey: .pushType)
        languages = try container.decodeIfPresent([String].self, forKey: .languages)
    }
}

/// A text to look at.
package struct ToolQuestion: Decodable, Sendable {
    package let text: String
}
