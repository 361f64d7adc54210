package import HeraldMailbox
package import HeraldModel

// What the admin API says and hears, as JSON: the types that the server writes and the commands read.
// Moments are texts in UTC with milliseconds (`2026-11-21T02:34:56.789Z`).

/// Whether the service does its work.
package struct HealthReport: Codable, Hashable, Sendable {
    package enum Status: String, Codable, Sendable {
        /// All doors are open and the store takes notifications.
        case ready
        /// It runs, and does not do its work at the moment.
        case notReady = "not ready"
    }

    package let status: Status
    /// What is wrong, in words; empty if nothing is.
    package let problems: [String]
    /// The drills that are on, in words; nil if none is.
    package let drills: [String]?

    package init(problems: [String], drills: [String] = []) {
        status = problems.isEmpty ? .ready : .notReady
        self.problems = problems
        self.drills = drills.isEmpty ? nil : drills
    }
}

/// The service at a glance.
package struct ServiceStatus: Codable, Hashable, Sendable {
    package let version: String
    package let pid: Int32
    package let started: String
    package let devicesConnected: Int
    package let notificationsWaiting: Int

    package init(version: String, pid: Int32, started: WallTime, devicesConnected: Int, notificationsWaiting: Int) {
        self.version = version
        self.pid = pid
        self.started = started.rfc3339
        self.devicesConnected = devicesConnected
        self.notificationsWaiting = notificationsWaiting
    }
}

/// What to look for in the journal.
package enum JournalQuestion: Hashable, Sendable {
    /// `apns-id` or `apns-unique-id`.
    case notification(NotificationID)
    case device(DeviceID)
    /// In both environments.
    case topic(Topic)
}

/// One line of the journal.
package struct JournalEntry: Codable, Hashable, Sendable {
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
    /// Why, where the state has a reason: `device offline`.
    package let reason: String?
    /// What took its place, where something did.
    package let replacement: String?
    /// How many devices a broadcast went to, in the line that says that it did.
    package let devices: Int?

    private enum CodingKeys: String, CodingKey {
        case time
        case id
        case uniqueID = "unique_id"
        case device
        case topic
        case environment
        case state
        case reason
        case replacement
        case devices
    }

    /// Makes an entry of an event; the names of device and app are the caller's to find.
    package init(_ event: JournalEvent, device: DeviceID?, app: App?) {
        time = event.time.rfc3339
        id = event.id.description
        uniqueID = event.uniqueID.description
        // A line about a broadcast is about no device.
        self.device = device?.name ?? (event.slot.device.value == 0 ? "" : "#\(event.slot.device.value)")
        topic = app?.topic.name ?? "#\(event.slot.app.value)"
        environment = app?.environment ?? .production
        // The words are a state, and where there is a reason, that in brackets.
        let parts = event.state.words.split(separator: " (", maxSplits: 1)
        state = parts.first.map(String.init) ?? event.state.words
        reason = parts.count == 2 ? String(parts[1].dropLast()) : nil
        devices = event.subscribers
        replacement = devices == nil ? event.replacement?.description : nil
    }
}

/// A provider's certificate or key.
package struct CredentialEntry: Codable, Hashable, Sendable {
    package enum Kind: String, Codable, Sendable {
        case certificate
        case key
    }

    package let id: String
    package let kind: Kind
    /// Lower-case hex; nil for a key.
    package let serial: String?
    package let team: String?
    package let topics: [Topic]
    package let environments: [PushEnvironment]
    package let created: String
    package let expires: String?
    package let revoked: String?

    package init(
        id: String,
        kind: Kind,
        serial: String?,
        team: String?,
        topics: [Topic],
        environments: [PushEnvironment],
        created: String,
        expires: String?,
        revoked: String?
    ) {
        self.id = id
        self.kind = kind
        self.serial = serial
        self.team = team
        self.topics = topics
        self.environments = environments
        self.created = created
        self.expires = expires
        self.revoked = revoked
    }
}

/// A broadcast channel.
package struct ChannelEntry: Codable, Hashable, Sendable {
    /// In base64, as providers name it.
    package let id: String
    package let topic: Topic
    package let environment: PushEnvironment
    /// 0: no message is stored; 1: the newest is.
    package let policy: UInt8
    package let created: String
    /// Connected devices that are subscribed.
    package let subscribers: Int
    /// Broadcasts since the service started.
    package let published: Int
    /// Copies that devices took since the service started.
    package let delivered: Int
    /// Whether a message waits for those who subscribe later.
    package let stored: Bool

    package init(
        id: String,
        topic: Topic,
        environment: PushEnvironment,
        policy: UInt8,
        created: String,
        subscribers: Int,
        published: Int,
        delivered: Int,
        stored: Bool
    ) {
        self.id = id
        self.topic = topic
        self.environment = environment
        self.policy = policy
        self.created = created
        self.subscribers = subscribers
        self.published = published
        self.delivered = delivered
        self.stored = stored
    }
}

/// A device that was enrolled.
package struct DeviceEntry: Codable, Hashable, Sendable {
    package let id: String
    package let name: String?
    /// Lower-case hex.
    package let serial: String
    package let created: String
    package let expires: String
    package let revoked: String?
    /// Whether it is connected now.
    package let connected: Bool

    package init(
        id: String,
        name: String?,
        serial: String,
        created: String,
        expires: String,
        revoked: String?,
        connected: Bool
    ) {
        self.id = id
        self.name = name
        self.serial = serial
        self.created = created
        self.expires = expires
        self.revoked = revoked
        self.connected = connected
    }
}

/// The service's time.
package struct ClockReading: Codable, Hashable, Sendable {
    package let now: String
    /// Milliseconds since the UNIX epoch.
    package let milliseconds: Int64
    package let adjustable: Bool

    package init(now: WallTime, adjustable: Bool) {
        self.now = now.rfc3339
        milliseconds = now.milliseconds
        self.adjustable = adjustable
    }
}

/// A request to move the service's time.
package struct ClockAdvance: Codable, Hashable, Sendable {
    /// Seconds, with a fraction if need be; negative to move it back.
    package let seconds: Double

    package init(seconds: Double) {
        self.seconds = seconds
    }
}
