package import HeraldModel

/// The columns of `push_queue` that others write, and how much of each is read.
enum QueueColumn: String, CaseIterable {
    case deviceToken = "device_token"
    case topic
    case payload
    case priority
    case expiration
    case collapseID = "collapse_id"
    case pushType = "push_type"
    case sendAfter = "send_after"
    case giveUpAt = "give_up_at"
    case environment
    case service
    case audience
    case template
    case parameters
    case timeQueued = "time_queued"

    /// The most bytes that count; what is longer is refused without being read.
    var limit: Int {
        switch self {
        case .deviceToken: 128 << 10
        case .payload: PushType.allCases.map(\.maximumPayloadBytes).max() ?? 5120
        case .parameters: 16 << 10
        default: 512
        }
    }
}

/// A row of the queue as it was claimed: what others wrote is not looked at yet.
package struct QueueRow: Sendable, Identifiable {
    package let id: Int64
    /// The identifier under which it is sent, each time.
    package let apnsID: String?
    /// Whether it may have been sent before by somebody who did not live to say so.
    package internal(set) var isUncertain: Bool
    /// How often a journal was asked for it since, and could not tell.
    package let questions: Int
    /// How often it was sent and got no final answer.
    package let attempts: Int
    /// The row for many tokens that this one is a part of.
    package let parent: Int64?
    /// What `devices` says of its token.
    package let device: DeviceEntry?
    private let values: [SQLValue]

    init(
        id: Int64,
        apnsID: String?,
        isUncertain: Bool,
        questions: Int = 0,
        attempts: Int,
        parent: Int64?,
        device: DeviceEntry?,
        values: [SQLValue]
    ) {
        self.id = id
        self.apnsID = apnsID
        self.isUncertain = isUncertain
        self.questions = questions
        self.attempts = attempts
        self.parent = parent
        self.device = device
        self.values = values
    }

    /// What a column holds; bytes past its limit are cut to one more than the limit.
    subscript(column: QueueColumn) -> SQLValue {
        guard let index = QueueColumn.allCases.firstIndex(of: column), index < values.count else { return .null }
        return values[index]
    }
}

/// What the table `devices` says of a token of an app.
package struct DeviceEntry: Hashable, Sendable {
    package var token: String
    package var topic: String
    package var environment: String?
    /// The name of the service that minted the token.
    package var service: String?
    package var user: String?
    /// Preferred languages, the most preferred first.
    package var languages: [String] = []
    package var registered: WallTime?
    package var died: WallTime?
    /// When it was found dead while the brake was on.
    package var held: WallTime?
    package var evidence: String?

    package init(token: String, topic: String) {
        self.token = token
        self.topic = topic
    }

    /// Whether the app is gone, and was not registered again since.
    package var isDead: Bool {
        guard let died else { return false }
        guard let registered else { return true }
        return registered <= died
    }
}
