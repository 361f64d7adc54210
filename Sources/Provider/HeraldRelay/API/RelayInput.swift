import HeraldJSON
import HeraldModel
import HeraldWeb

/// Checks the length of a string member.
private func checked(_ text: String?, _ name: String, _ longest: Int) throws -> String? {
    guard let text else { return nil }
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
struct DeviceInput: Decodable, SnakeCased {
    let deviceToken: String
    let topic: String
    let environment: String?
    let service: String?
    let userName: String?
    let languages: [String]?

    func entry(at now: WallTime) throws -> RelayDevice {
        guard let token = PushToken(deviceToken) else {
            throw WebRefusal(400, "`device_token` must be \(PushToken.rule)")
        }
        var entry = RelayDevice(token: token.hex, topic: try HeraldRelay.topic(topic))
        entry.environment = try HeraldRelay.environment(environment)
        entry.service = try checked(service, "service", 64)
        entry.userName = try checked(userName, "user_name", 200)
        let languages = languages ?? []
        let isTag = { (tag: String) in
            (1...LanguageList.maximumLength).contains(tag.utf8.count)
                && tag.utf8.allSatisfy { $0 == UInt8(ascii: "-") || $0.isASCIIAlphanumeric }
        }
        guard languages.count <= LanguageList.maximumCount, languages.allSatisfy(isTag) else {
            throw WebRefusal(400, "`languages` must be at most 20 tags like de-CH")
        }
        entry.languages = languages
        entry.registered = now
        return entry
    }
}

/// `POST /v1/pushes`.
struct PushInput: Decodable, SnakeCased {
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
    let userName: String?
    let topic: String
    let payload: PayloadBody?
    let template: String?
    let parameters: JSON?
    let priority: JSON?
    let expiration: JSON?
    let collapseID: String?
    let pushType: String?
    let sendAfter: String?
    let giveUpAt: String?
    let environment: String?
    let service: String?

    /// The row; it refuses what every service would refuse.
    func push(at now: WallTime) throws -> NewPush {
        var values: [QueueColumn: SQLValue] = [.topic: .text(try HeraldRelay.topic(topic))]
        try address(&values)
        try content(&values)
        if let priority {
            guard let number = priority.number?.exactly(UInt8.self), Priority(rawValue: number) != nil else {
                throw WebRefusal(400, "`priority` must be 10, 5 or 1")
            }
            values[.priority] = .int(Int64(number))
        }
        if let expiration {
            guard let seconds = expiration.number?.exactly(Int64.self),
                seconds == 0 || StoredMoment.read(.int(seconds)).map({ $0 <= now + StoredMoment.longestWait }) == true
            else {
                throw WebRefusal(400, RowReason.badExpirationDate.meaning)
            }
            values[.expiration] = .int(seconds)
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
            guard let moment = WallTime(rfc3339: text), moment.milliseconds >= 0,
                moment <= now + StoredMoment.longestWait
            else {
                throw WebRefusal(
                    400,
                    "`\(column.name)` must be a time like 2026-11-21T02:34:56Z or 2026-11-21T03:34:56+01:00, at most ten years ahead"
                )
            }
            values[column] = StoredMoment.exactText(moment)
        }
        if let environment = try HeraldRelay.environment(environment) { values[.environment] = .text(environment) }
        if let service = try checked(service, "service", 64) { values[.service] = .text(service) }
        return NewPush(values)
    }

    private func address(_ values: inout [QueueColumn: SQLValue]) throws {
        switch (deviceToken, userName) {
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
            let list = JSON.array(tokens.map { .string($0.lowercased()) })
            values[.deviceToken] = .text(list.description)
        case (nil, let user?):
            values[.userName] = .text(try checked(user, "user_name", 200))
        default:
            throw WebRefusal(400, "the recipient is missing: give either `device_token` or `user_name`")
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
            let json = parameters.bytes
            guard (try? TemplateText.parameters(json)) != nil else {
                throw WebRefusal(400, "`parameters` must be an object of texts, numbers, booleans and nulls")
            }
            guard json.count <= QueueColumn.parameters.limit else {
                throw WebRefusal(400, "`parameters` may have at most \(QueueColumn.parameters.limit) bytes")
            }
            values[.parameters] = .bytes(json)
        default:
            throw WebRefusal(400, "the content is missing: give either `payload` or `template`")
        }
    }
}
