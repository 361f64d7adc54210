import Foundation
import HeraldDevice
package import HeraldModel

extension LocalNotification.Trigger: Codable {
    private enum CodingKeys: String, CodingKey {
        case after, at, every
    }

    /// The longest time of ``after(_:)``, in seconds: a hundred years.
    private static let longestSeconds = 36_525.0 * 86_400

    /// Reads the one member `after` (seconds), `at` or `every` of an object; other members are ignored.
    /// - Throws: `DecodingError` with an explanation for the sender.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        func failure(_ key: CodingKeys, _ words: String) -> DecodingError {
            .dataCorruptedError(forKey: key, in: container, debugDescription: words)
        }
        guard let key = container.allKeys.first, container.allKeys.count == 1 else {
            throw failure(
                .after,
                "a local notification needs one of \"after\" (seconds), \"at\" (2026-12-24T18:00) and \"every\" (day 07:00)"
            )
        }
        switch key {
        case .after:
            guard let seconds = try? container.decode(Double.self, forKey: .after),
                (0.001...Self.longestSeconds).contains(seconds)
            else {
                throw failure(key, "\"after\" must be a number of seconds above 0, and a hundred years at most")
            }
            self = .after(.milliseconds(Int64((seconds * 1000).rounded())))
        case .at:
            guard let moment = (try? container.decode(String.self, forKey: .at)).flatMap({ CalendarMoment($0) }) else {
                throw failure(key, "\"at\" must be \(Self.momentWords)")
            }
            self = .at(moment)
        case .every:
            guard let rule = (try? container.decode(String.self, forKey: .every)).flatMap({ CalendarRule($0) }) else {
                throw failure(key, "\"every\" must be \(Self.ruleWords)")
            }
            self = .every(rule)
        }
    }

    /// The form of ``at(_:)``, for error messages.
    package static let momentWords =
        "a time like 2026-12-24T18:00 (of the device's time zone), 2026-12-24T18:00Z or 2026-12-24T18:00+01:00"
    /// The form of ``every(_:)``, for error messages.
    package static let ruleWords =
        "a rule like 15m (at least 1m), \"day 07:00\", \"monday 07:00\", \"month 1 07:00\" or \"year 12-24 18:00\""

    /// Writes the one member.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        switch self {
        case .after(let time): try container.encode(Double(time.wholeMilliseconds) / 1000, forKey: .after)
        case .at(let moment): try container.encode(moment.description, forKey: .at)
        case .every(let rule): try container.encode(rule.description, forKey: .every)
        }
    }
}

extension LocalNotification {
    /// The request that schedules it, without its number.
    package func request(for topic: Topic) -> [String: PayloadValue] {
        let (name, value): (String, PayloadValue) =
            switch trigger {
            case .after(let time): ("after", .number(Double(time.wholeMilliseconds) / 1000))
            case .at(let moment): ("at", .string(moment.description))
            case .every(let rule): ("every", .string(rule.description))
            }
        return [
            "do": .string("schedule"), "topic": .string(topic.name), "notification": .string(id), "payload": payload,
            name: value,
        ]
    }
}

extension PendingNotification: Codable {
    private enum CodingKeys: String, CodingKey {
        case notification, topic, next, trigger, payload
    }

    /// Reads one of the `pending` notifications of the local socket.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        topic = try container.decode(Topic.self, forKey: .topic)
        next = try container.decode(Double.self, forKey: .next)
        notification = LocalNotification(
            id: try container.decode(String.self, forKey: .notification),
            payload: try container.decode(PayloadValue.self, forKey: .payload),
            trigger: try container.decode(LocalNotification.Trigger.self, forKey: .trigger)
        )
    }

    /// Writes one flat object: `{"notification":NAME,"topic":…,"next":…,"trigger":{"every":…},"payload":{…}}`.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(notification.id, forKey: .notification)
        try container.encode(topic, forKey: .topic)
        try container.encode(next, forKey: .next)
        try container.encode(notification.trigger, forKey: .trigger)
        try container.encode(notification.payload, forKey: .payload)
    }
}

extension PendingNotification {
    /// The notifications in the agent's answer to `pending`.
    /// - Throws: ``DeviceError/Code/notPossible`` if the answer is not one of this version.
    package static func list(in answer: [String: PayloadValue]) throws -> [PendingNotification] {
        do {
            return try JSONDecoder().decode([PendingNotification].self, from: JSONEncoder().encode(answer["pending"]))
        } catch {
            throw DeviceError(.notPossible, "the agent's answer cannot be read: does it run this version of Herald?")
        }
    }
}
