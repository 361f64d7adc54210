import HeraldJSON
package import HeraldModel
import HeraldWeb

// JSON of `POST /v1/send`.

/// Notifications to send as a provider does.
package struct SendOrder: Decodable, Sendable {
    /// The most recipients of one order.
    package static let maximumRecipients = 100

    /// The receiver of a notification: one of a device with a topic, a token with a topic, and a channel with a topic.
    package struct Recipient: Decodable, Hashable, Sendable {
        package let device: String?
        package let token: String?
        package let channel: String?
        /// The topic, with the suffix of the push type; of a channel the bundle identifier.
        package let topic: String
    }

    package let recipients: [Recipient]
    /// Whether the order had a list of recipients, and the answer has one too.
    package let isList: Bool
    package let environment: PushEnvironment
    /// The fields of the header, by name.
    package let headers: [String: String]
    /// The payload: the text if it is a JSON string, else the JSON object.
    package let payload: [UInt8]

    private enum CodingKeys: String, CodingKey {
        case to, environment, headers, payload
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        if let one = try? container.decode(Recipient.self, forKey: .to) {
            (recipients, isList) = ([one], false)
        } else {
            let many = try? container.decode([Recipient].self, forKey: .to)
            guard let many, (1...SendOrder.maximumRecipients).contains(many.count) else { throw Self.badRecipient }
            (recipients, isList) = (many, true)
        }
        for recipient in recipients {
            let kinds = [recipient.device, recipient.token, recipient.channel]
            guard kinds.count(where: { $0 != nil }) == 1 else { throw Self.badRecipient }
        }
        let name =
            try container.decodeIfPresent(String.self, forKey: .environment) ?? PushEnvironment.production.rawValue
        guard let environment = PushEnvironment(rawValue: name) else {
            throw WebRefusal(400, "environment must be production or sandbox")
        }
        self.environment = environment
        guard let headers = try? container.decodeIfPresent([String: String].self, forKey: .headers) ?? [:] else {
            throw WebRefusal(400, "headers is an object of texts, like {\"apns-priority\":\"5\"}")
        }
        self.headers = headers
        payload = try container.decode(PayloadBody.self, forKey: .payload).bytes
    }

    private static let badRecipient = WebRefusal(
        400,
        "to is {\"device\", \"topic\"}, {\"token\", \"topic\"} or {\"channel\", \"topic\"}, or a list of 1 to "
            + "\(maximumRecipients) of them"
    )
}

/// The answer to a notification that the console sent.
package struct SendAnswer: Codable, SnakeCased, Hashable, Sendable {
    /// Nil if there was no answer.
    package let status: Int?
    package let reason: String?
    /// `apns-id`, or `apns-request-id` of a broadcast.
    package let id: String?
    package let uniqueID: String?
    package let explanation: String?
    /// Milliseconds until the answer.
    package let tookMS: Double

    package init(
        status: Int?,
        reason: String?,
        id: String?,
        uniqueID: String? = nil,
        explanation: String?,
        tookMS: Double
    ) {
        self.status = status
        self.reason = reason
        self.id = id
        self.uniqueID = uniqueID
        self.explanation = explanation
        self.tookMS = tookMS
    }
}

/// The answers to a list of recipients, in its order.
package struct SendAnswers: Codable, Hashable, Sendable {
    package let items: [SendAnswer]
}
