import HeraldDevice
public import HeraldJSON
public import HeraldModel

/// A notification that an app schedules on its own device; no provider and no network take part.
public struct LocalNotification: Hashable, Sendable {
    /// The condition under which a local notification is due.
    public enum Trigger: Hashable, Sendable {
        /// Due once, when this time has passed on the device's clock.
        case after(Duration)
        /// Due once, at a moment.
        case at(CalendarMoment)
        /// Due again and again.
        case every(CalendarRule)
    }

    /// The identifier, chosen by the app, of 1 to 64 bytes.
    ///
    /// A notification with the same identifier replaces the pending one, and, when it is shown, the one on the screen.
    public var id: String
    /// The payload: the `aps` dictionary of a remote notification, and the app's own members; at most 4,096 bytes.
    public var payload: JSON
    /// The condition under which it is due.
    public var trigger: Trigger

    /// Creates a notification.
    public init(id: String, payload: JSON, trigger: Trigger) {
        self.id = id
        self.payload = payload
        self.trigger = trigger
    }
}

/// A local notification that is not due yet.
public struct PendingNotification: Hashable, Sendable {
    /// The app that scheduled it.
    public var topic: Topic
    /// The notification.
    public var notification: LocalNotification
    /// The time at which it is due next, in UNIX seconds of the device's clock.
    public var next: Double
}

// MARK: - JSON

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
            payload: try container.decode(JSON.self, forKey: .payload),
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
    package static func list(in answer: JSON.Object) throws -> [PendingNotification] {
        do {
            return try (answer["pending"] ?? .null).decode([PendingNotification].self)
        } catch {
            throw DeviceError(.notPossible, "the agent's answer cannot be read: does it run this version of Herald?")
        }
    }
}
