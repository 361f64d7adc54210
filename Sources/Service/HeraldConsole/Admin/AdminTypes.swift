import HeraldJSON
package import HeraldMailbox
package import HeraldModel

// JSON of the admin API, for the server and the commands. Times are in UTC with milliseconds (`2026-11-21T02:34:56.789Z`).

/// Health of the service.
package struct HealthReport: Codable, Hashable, Sendable {
    package enum Status: String, Codable, CaseIterable, Sendable {
        /// All listeners are open and the store takes notifications.
        case ready
        /// It runs, but does not work.
        case notReady = "not ready"
    }

    package let status: Status
    /// Problems, in words.
    package let problems: [String]
    /// Faults that do not keep it from working, in words; nil if there are none.
    package let warnings: [String]?
    /// Active drills, in words; nil if there are none.
    package let drills: [String]?
    /// Facts that operators should know and need not mend, in words; nil if there are none.
    package let notes: [String]?

    package init(problems: [String], warnings: [String] = [], drills: [String] = [], notes: [String] = []) {
        status = problems.isEmpty ? .ready : .notReady
        self.problems = problems
        self.warnings = warnings.isEmpty ? nil : warnings
        self.drills = drills.isEmpty ? nil : drills
        self.notes = notes.isEmpty ? nil : notes
    }
}

/// Query of the journal.
package enum JournalQuestion: Hashable, Sendable {
    /// `apns-id` or `apns-unique-id`.
    case notification(NotificationID)
    case device(DeviceID)
    /// In both environments.
    case topic(Topic)
}

/// One line of the journal.
package struct JournalEntry: Codable, SnakeCased, Hashable, Sendable {
    package let time: String
    /// `apns-id`.
    package let id: String
    /// `apns-unique-id`.
    package let uniqueID: String
    package let device: String
    package let topic: String
    package let environment: PushEnvironment
    /// The state in words, without its reason: `stored`, `delivered from storage`.
    package let state: String
    /// Reason of the state, if it has one: `device offline`.
    package let reason: String?
    /// `apns-id` of the notification that replaced it, if one did.
    package let replacement: String?
    /// Number of devices that a broadcast was sent to.
    package let devices: Int?
    /// Credential of the provider, as the list of credentials names it; on lines `received` and `refused`, if it is known.
    package let provider: String?
    /// Push type of the request; on the same lines.
    package let type: String?
    /// Priority of the request: 10, 5 or 1; on the same lines.
    package let priority: Int?
    /// Bytes of the request's payload; on the same lines.
    package let size: Int?
    /// HTTP status of a refused request; its ``reason`` is that of the answer.
    package let status: Int?
    /// Fault of a refused request and its remedy, as `herald-explain` shows it.
    package let explanation: String?
    /// Node of a cluster that wrote the line; nil for a service that stands alone.
    package let node: String?

    /// Makes an entry of an event; the caller looks up device, app and provider.
    package init(
        _ event: JournalEvent,
        device: DeviceID?,
        app: App?,
        provider: String? = nil,
        node: String? = nil
    ) {
        let refusal = event.refusal
        time = event.time.rfc3339
        id = event.id.description
        uniqueID = event.uniqueID.description
        self.device = device?.name ?? event.device.map { "#\($0.value)" } ?? ""
        let unknownTopic = event.app == JournalRefusal.noApp ? refusal?.topic ?? "" : "#\(event.app.value)"
        topic = app?.topic.name ?? unknownTopic
        environment = app?.environment ?? refusal?.environment ?? .production
        // The words are a state, with a reason in parentheses if it has one.
        let parts = event.state.words.split(separator: " (", maxSplits: 1)
        state = parts.first.map(String.init) ?? event.state.words
        reason = refusal?.reason.reason ?? (parts.count == 2 ? String(parts[1].dropLast()) : nil)
        self.provider = provider
        type = event.request?.pushType?.rawValue
        priority = event.request?.priority.map { Int($0.rawValue) }
        size = event.request.map { Int($0.payloadBytes) }
        status = refusal?.reason.httpStatus
        explanation = refusal?.explanation
        devices = event.subscriberCount.map { Int(clamping: $0) }
        replacement = event.replacement?.description
        self.node = node
    }
}

/// A broadcast channel.
package struct ChannelEntry: Codable, Hashable, Sendable {
    /// Channel identifier, in base64.
    package let id: String
    package let topic: Topic
    package let environment: PushEnvironment
    /// 0: no storage; 1: the newest message is stored.
    package let policy: UInt8
    package let created: String
    /// Number of connected subscribers.
    package let subscribers: Int
    /// Number of broadcasts since the service started.
    package let published: Int
    /// Number of copies that devices acknowledged since the service started.
    package let delivered: Int
    /// Whether a message is stored for later subscribers.
    package let stored: Bool
}

extension ChannelEntry {
    package init(_ summary: ChannelService.Summary) {
        self.init(
            id: summary.channel.id.base64,
            topic: summary.app.topic,
            environment: summary.app.environment,
            policy: summary.channel.storage.rawValue,
            created: summary.channel.created.rfc3339,
            subscribers: summary.feed.subscribers,
            published: summary.feed.published,
            delivered: summary.feed.delivered,
            stored: summary.hasStoredMessage
        )
    }
}

/// An app whose name the service knows, or a topic that a team owns and no app has yet.
package struct AppEntry: Codable, SnakeCased, Hashable, Sendable {
    package let topic: Topic
    /// Nil if no app has the topic yet.
    package let environment: PushEnvironment?
    /// Number of devices on which it is registered.
    package let devices: Int
    package let channels: Int
    /// Whether it can be forgotten.
    package let unused: Bool
    /// Time when the name was brought; nil if no app has the topic yet.
    package let created: String?
    /// Device that brought the name, if one did.
    package let device: String?
    /// Team that brought the name with a channel, if one did.
    package let team: String?
    /// Team that owns the topic, if one does.
    package var owner: String?
    package var ownerSince: String?
    /// Why the team owns it: `use`, `credential` or `operator`.
    package var ownerOrigin: String?

    /// Makes an entry of an app.
    package init(_ usage: AppUsage, device: String? = nil, team: String? = nil) {
        topic = usage.record.app.topic
        environment = usage.record.app.environment
        devices = usage.devices
        channels = usage.channels
        unused = usage.isUnused
        created = usage.record.created.rfc3339
        self.device = device
        self.team = team
    }

    /// Makes an entry of a topic that no app has yet.
    package init(_ topic: Topic) {
        self.topic = topic
        environment = nil
        devices = 0
        channels = 0
        unused = false
        created = nil
        device = nil
        team = nil
    }
}

/// The service's time.
package struct ClockReading: Codable, SnakeCased, Hashable, Sendable {
    package let now: String
    /// Milliseconds since the UNIX epoch.
    package let milliseconds: Int64
    package let adjustable: Bool
    /// Jump of the machine's clock that nobody has accepted yet; nil without one, negative if it was set back.
    package let jumpSeconds: Int64?

    package init(now: WallTime, adjustable: Bool, jump: Duration = .zero) {
        self.now = now.rfc3339
        milliseconds = now.milliseconds
        self.adjustable = adjustable
        jumpSeconds = jump == .zero ? nil : jump.components.seconds
    }
}

/// A request to move the service's time.
package struct ClockAdvance: Codable, Hashable, Sendable {
    /// Seconds, with or without a fraction; negative to move it back.
    package let seconds: Double

    package init(seconds: Double) {
        self.seconds = seconds
    }

    /// The same, far from the limits of arithmetic.
    /// - Throws: ``AdminError`` for more than a hundred years.
    package func duration() throws -> Duration {
        guard seconds.isFinite, abs(seconds) <= 3_155_760_000 else {
            throw AdminError(.badRequest, "seconds must be a number within a hundred years")
        }
        return .milliseconds(Int64(seconds * 1000))
    }
}
