import Foundation
import HeraldModel
import HeraldWeb

/// Checks the length of a string member.
private func checked(_ text: String?, _ name: String, _ longest: Int, isNeeded: Bool = false) throws -> String? {
    guard let text else {
        if isNeeded { throw WebRefusal(400, "`\(name)` is missing") }
        return nil
    }
    guard !text.isEmpty, text.utf8.count <= longest, !text.utf8.contains(0) else {
        throw WebRefusal(400, "`\(name)` must have 1 to \(longest) bytes, without zero bytes")
    }
    return text
}

private func topic(_ text: String) throws -> String {
    guard Topic(text) != nil else {
        throw WebRefusal(400, "`topic` must be a topic like com.example.app")
    }
    return text
}

private func environment(_ text: String?) throws -> String? {
    guard let text else { return nil }
    guard PushEnvironment(rawValue: text) != nil else {
        throw WebRefusal(400, "`environment` must be production or sandbox")
    }
    return text
}

/// `PUT /v1/devices`.
struct DeviceInput: StrictDecodable {
    let deviceToken: String
    let topic: String
    let environment: String?
    let service: String?
    let user: String?
    let languages: [String]?

    enum CodingKeys: String, CodingKey, CaseIterable {
        case deviceToken = "device_token"
        case topic
        case environment
        case service
        case user
        case languages
    }

    func entry(at now: WallTime) throws -> DeviceEntry {
        guard let token = PushToken(deviceToken) else {
            throw WebRefusal(400, "`device_token` must be \(PushToken.rule)")
        }
        var entry = DeviceEntry(token: token.hex, topic: try HeraldRelay.topic(topic))
        entry.environment = try HeraldRelay.environment(environment)
        entry.service = try checked(service, "service", 64)
        entry.user = try checked(user, "user", 200)
        let languages = languages ?? []
        let isTag = { (tag: String) in
            (1...LanguageList.maximumLength).contains(tag.utf8.count)
                && tag.utf8.allSatisfy { $0 == UInt8(ascii: "-") || Character(UnicodeScalar($0)).isASCIILetterOrDigit }
        }
        guard languages.count <= LanguageList.maximumCount, languages.allSatisfy(isTag) else {
            throw WebRefusal(400, "`languages` must be at most 20 tags like de-CH")
        }
        entry.languages = languages
        entry.registered = now
        return entry
    }
}

extension Character {
    fileprivate var isASCIILetterOrDigit: Bool { isASCII && (isLetter || isNumber) }
}

/// `POST /v1/pushes`.
struct PushInput: StrictDecodable {
    /// One token or a list.
    enum Tokens: Decodable {
        case one(String)
        case many([String])

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let one = try? container.decode(String.self) {
                self = .one(one)
            } else {
                self = .many(try container.decode([String].self))
            }
        }
    }

    let deviceToken: Tokens?
    let user: String?
    let topic: String
    let payload: JSONText?
    let template: String?
    let parameters: [String: JSONScalar]?
    let priority: Int?
    let expiration: Int64?
    let collapseID: String?
    let pushType: String?
    let sendAfter: String?
    let giveUpAt: String?
    let environment: String?
    let service: String?

    enum CodingKeys: String, CodingKey, CaseIterable {
        case deviceToken = "device_token"
        case user
        case topic
        case payload
        case template
        case parameters
        case priority
        case expiration
        case collapseID = "collapse_id"
        case pushType = "push_type"
        case sendAfter = "send_after"
        case giveUpAt = "give_up_at"
        case environment
        case service
    }

    /// The row; it refuses what every service would refuse.
    func push() throws -> NewPush {
        var values: [QueueColumn: SQLValue] = [.topic: .text(try HeraldRelay.topic(topic))]
        try address(&values)
        try content(&values)
        if let priority {
            guard let number = UInt8(exactly: priority), Priority(rawValue: number) != nil else {
                throw WebRefusal(400, "`priority` must be 10, 5 or 1")
            }
            values[.priority] = .int(Int64(priority))
        }
        if let expiration {
            guard (0...253_402_300_799).contains(expiration) else {
                throw WebRefusal(400, "`expiration` must be in seconds since 1970, or 0")
            }
            values[.expiration] = .int(expiration)
        }
        if let collapseID {
            guard CollapseID(collapseID) != nil else {
                throw WebRefusal(400, "`collapse_id` must be \(CollapseID.rule)")
            }
            values[.collapseID] = .text(collapseID)
        }
        if let pushType {
            guard PushType(rawValue: pushType) != nil else {
                throw WebRefusal(400, "`push_type` must be a value of apns-push-type, like alert")
            }
            values[.pushType] = .text(pushType)
        }
        for (column, text) in [(QueueColumn.sendAfter, sendAfter), (.giveUpAt, giveUpAt)] {
            guard let text else { continue }
            guard let moment = WallTime(rfc3339: text), moment.milliseconds >= 0 else {
                throw WebRefusal(400, "`\(column.name)` must be a time like 2026-11-21T02:34:56Z")
            }
            values[column] = StoredMoment.text(moment)
        }
        if let environment = try HeraldRelay.environment(environment) { values[.environment] = .text(environment) }
        if let service = try checked(service, "service", 64) { values[.service] = .text(service) }
        return NewPush(values)
    }

    private func address(_ values: inout [QueueColumn: SQLValue]) throws {
        switch (deviceToken, user) {
        case (.one(let token)?, nil):
            guard let token = PushToken(token) else {
                throw WebRefusal(400, "`device_token` must be \(PushToken.rule), or a list of such strings")
            }
            values[.deviceToken] = .text(token.hex)
        case (.many(let tokens)?, nil):
            guard (1...RowReader.maximumTokens).contains(tokens.count), tokens.allSatisfy({ PushToken($0) != nil })
            else {
                throw WebRefusal(
                    400,
                    "`device_token` must be a list of 1 to \(RowReader.maximumTokens) strings, each of \(PushToken.rule)"
                )
            }
            let list = tokens.map { "\"\($0.lowercased())\"" }.joined(separator: ",")
            values[.deviceToken] = .text("[\(list)]")
        case (nil, let user?):
            values[.audience] = .text(try checked(user, "user", 200))
        default:
            throw WebRefusal(400, "the recipient is missing: give either `device_token` or `user`")
        }
    }

    private func content(_ values: inout [QueueColumn: SQLValue]) throws {
        switch (payload, template) {
        case (let payload?, nil):
            guard parameters == nil else { throw WebRefusal(400, "`parameters` are only for a `template`") }
            guard payload.bytes.count <= QueueColumn.payload.limit, case .object = PayloadScanner.scan(payload.bytes)
            else {
                throw WebRefusal(
                    400,
                    "`payload` must be a JSON object of at most \(QueueColumn.payload.limit) bytes"
                )
            }
            values[.payload] = .bytes(payload.bytes)
        case (nil, let template?):
            values[.template] = .text(try checked(template, "template", 200))
            guard let parameters else { return }
            let members = parameters.sorted { $0.key < $1.key }.map { name, value in
                JSONScalar.text(name).quoted + [UInt8(ascii: ":")] + value.json
            }
            let json = [UInt8(ascii: "{")] + members.joined(separator: [UInt8(ascii: ",")]) + [UInt8(ascii: "}")]
            guard json.count <= QueueColumn.parameters.limit else {
                throw WebRefusal(400, "`parameters` may have at most \(QueueColumn.parameters.limit) bytes")
            }
            values[.parameters] = .bytes(json)
        default:
            throw WebRefusal(400, "the content is missing: give either `payload` or `template`")
        }
    }
}

/// A payload: a JSON object, or its text, which is sent byte for byte.
struct JSONText: Decodable {
    let bytes: [UInt8]

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let text = try? container.decode(String.self) {
            bytes = Array(text.utf8)
        } else {
            let value = try container.decode([String: JSONValue].self)
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            bytes = Array(try encoder.encode(value))
        }
    }
}

/// A JSON value.
indirect enum JSONValue: Codable, Hashable {
    case scalar(JSONScalar)
    case array([JSONValue])
    case object([String: JSONValue])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let object = try? container.decode([String: JSONValue].self) {
            self = .object(object)
        } else if let array = try? container.decode([JSONValue].self) {
            self = .array(array)
        } else {
            self = .scalar(try container.decode(JSONScalar.self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .object(let object): try container.encode(object)
        case .array(let array): try container.encode(array)
        case .scalar(.text(let text)): try container.encode(text)
        case .scalar(.integer(let number)): try container.encode(number)
        case .scalar(.number(let number)): try container.encode(number)
        case .scalar(.flag(let flag)): try container.encode(flag)
        case .scalar(.null): try container.encodeNil()
        }
    }
}
