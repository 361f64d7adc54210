import Foundation
import HeraldModel
import HeraldProvider

/// Plan for a row.
enum RowPlan: Sendable {
    /// Final without sending.
    case final(FinalStatus, reason: String)
    /// Not due yet.
    case wait(WallTime)
    /// Addressed to many tokens.
    case fanOut([String])
    /// Addressed to the devices of a user.
    case audience(String, topic: String)
    /// Needs its template filled.
    case template(String)
    case send(PreparedRow)
}

/// A validated row, ready to send.
struct PreparedRow: Sendable {
    let request: PushRequest
    let topic: Topic
    let environment: PushEnvironment?
    /// Name of the service that issued the token, if the row or the device names it.
    let service: String?
    /// Time after which it is not sent.
    let deadline: WallTime
}

/// Identifier and destination under which a row was sent.
struct SentTarget: Hashable, Sendable {
    let id: NotificationID
    let topic: Topic
    let environment: PushEnvironment?
    let service: String?
}

/// Validates rows; any program may have written them, so invalid content becomes a reason and never an error.
struct RowReader: Sendable {
    /// Maximum number of tokens in one row.
    static let maximumTokens = 1000

    /// September 2001.
    ///
    /// An earlier expiration is a duration written by mistake, and the service would drop the notification for every
    /// offline device.
    private static let oldestExpiration = WallTime(seconds: 1_000_000_000)

    var longestLife: Duration

    /// Plans a row.
    /// - Parameters:
    ///   - row: The row.
    ///   - now: Current time.
    ///   - filled: The filled template; nil if there is none or it is not filled yet.
    /// - Returns: The plan.
    func plan(_ row: QueueRow, at now: WallTime, payload filled: [UInt8]? = nil) -> RowPlan {
        do {
            return try read(row, now, filled)
        } catch {
            return .final(.refused, reason: error.reason)
        }
    }

    /// The target of a row that may have been sent, whatever its time and device are now; nil if it cannot have been sent.
    func target(of row: QueueRow) -> SentTarget? {
        do {
            guard let topic = try text(row, .topic).flatMap({ Topic($0) }), row[.audience] == .null,
                let token = try text(row, .deviceToken), !token.hasPrefix("["),
                let id = row.apnsID.flatMap({ NotificationID($0) })
            else { return nil }
            return SentTarget(id: id, topic: topic, environment: try environment(row), service: try service(row))
        } catch {
            return nil
        }
    }

    /// Time after which a row is not sent.
    /// - Throws: ``RowError``.
    func deadline(of row: QueueRow, at now: WallTime) throws(RowError) -> WallTime {
        let queued = queued(row) ?? now
        let start = try moment(row, .sendAfter)
        let end = try moment(row, .giveUpAt)
        return end ?? max(queued, start ?? queued) + longestLife
    }

    /// When a row was queued; nil if unreadable.
    func queued(_ row: QueueRow) -> WallTime? {
        StoredMoment.read(row[.timeQueued])
    }

    private func read(_ row: QueueRow, _ now: WallTime, _ filled: [UInt8]?) throws(RowError) -> RowPlan {
        let deadline = try deadline(of: row, at: now)
        // If it may have been sent, nothing can tell by then whether it was.
        if now >= deadline { return .final(.expired, reason: row.isUncertain ? RowOutcome.inDoubt : "GiveUpAt") }
        if let start = try moment(row, .sendAfter), start > now { return .wait(start) }
        guard let topicText = try text(row, .topic), !topicText.isEmpty else { throw .missingTopic }
        guard let topic = Topic(topicText) else { throw .badTopic }
        if let audience = try text(row, .audience) {
            guard row[.deviceToken] == .null, !audience.isEmpty else { throw .badAudience }
            return .audience(audience, topic: topicText)
        }
        guard let token = try text(row, .deviceToken), !token.isEmpty else { throw .missingDeviceToken }
        if token.hasPrefix("[") { return .fanOut(try RowReader.tokens(token)) }
        guard let deviceToken = PushToken(token) else { throw .badDeviceToken }
        if row.device?.isDead == true { return .final(.refused, reason: RefusalReason.unregistered.reason) }
        if let template = try text(row, .template), filled == nil {
            guard row[.payload] == .null else { throw .badTemplate }
            return .template(template)
        }
        let request = try request(row, deviceToken, topic, payload: filled)
        return .send(
            PreparedRow(
                request: request,
                topic: topic,
                environment: try environment(row),
                service: try service(row),
                deadline: deadline
            )
        )
    }

    private func request(
        _ row: QueueRow,
        _ token: PushToken,
        _ topic: Topic,
        payload filled: [UInt8]?
    ) throws(RowError) -> PushRequest {
        guard let payload = filled ?? row[.payload].bytes, !payload.isEmpty else { throw .payloadEmpty }
        var type = PushType.allCases.first { !$0.topicSuffix.isEmpty && topic.name.hasSuffix($0.topicSuffix) } ?? .alert
        let (verdict, isSilent) = PayloadScanner.survey(payload)
        let named = try text(row, .pushType)
        if let named {
            guard let known = PushType(rawValue: named) else { throw .badPushType }
            type = known
        } else if type == .alert, isSilent {
            type = .background
        }
        guard payload.count <= type.maximumPayloadBytes else { throw .payloadTooLarge }
        guard case .object = verdict else { throw .badPayload }
        var request = PushRequest(token: token, topic: topic, payload: payload, pushType: type)
        if row[.priority] != .null {
            guard let number = row[.priority].int.flatMap({ UInt8(exactly: $0) }),
                let priority = Priority(rawValue: number)
            else { throw .badPriority }
            request.priority = priority
        } else if type == .background {
            // Without it the priority is 10, which background pushes do not allow.
            request.priority = .conserving
        }
        if row[.expiration] != .null {
            guard let moment = StoredMoment.read(row[.expiration]),
                moment.seconds == 0 || moment >= RowReader.oldestExpiration
            else {
                throw .badExpiration
            }
            request.expiration = moment.seconds == 0 ? .once : .at(moment)
        }
        if let collapse = try text(row, .collapseID) {
            guard CollapseID(collapse) != nil else { throw .badCollapseID }
            request.collapseID = collapse
        }
        guard let id = row.apnsID.flatMap({ NotificationID($0) }) else { throw .badMessageID }
        request.id = id
        return request
    }

    private func service(_ row: QueueRow) throws(RowError) -> String? {
        try text(row, .service) ?? row.device?.service
    }

    private func environment(_ row: QueueRow) throws(RowError) -> PushEnvironment? {
        guard let name = try text(row, .environment) ?? row.device?.environment else { return nil }
        switch name {
        case "production": return .production
        case "sandbox", "development": return .sandbox
        default: throw .badEnvironment
        }
    }

    private func moment(_ row: QueueRow, _ column: QueueColumn) throws(RowError) -> WallTime? {
        guard row[column] != .null else { return nil }
        guard let moment = StoredMoment.read(row[column]) else {
            throw column == .sendAfter ? .badSendAfter : .badGiveUpAt
        }
        return moment
    }

    /// Text of a column; nil for NULL.
    private func text(_ row: QueueRow, _ column: QueueColumn) throws(RowError) -> String? {
        guard row[column] != .null else { return nil }
        guard let bytes = row[column].bytes, bytes.count <= column.limit, let text = row[column].text,
            !text.utf8.contains(0)
        else { throw RowError(column) }
        return text
    }

    /// Tokens of a row for many: a JSON array of strings; an invalid token becomes a part that is refused.
    static func tokens(_ json: String) throws(RowError) -> [String] {
        guard let list = try? JSONDecoder().decode([String].self, from: Data(json.utf8)), !list.isEmpty else {
            throw .badDeviceToken
        }
        guard list.count <= maximumTokens else { throw .tooManyTokens }
        var seen: Set<String> = []
        // A part must not be a list itself.
        return list.map { $0.hasPrefix("[") ? "?" : $0 }.filter { seen.insert($0.lowercased()).inserted }
    }
}

/// Error in a row, with the service's reason string where it has one.
struct RowError: Error, Hashable {
    let reason: String

    private init(_ reason: String) {
        self.reason = reason
    }

    private init(_ refusalReason: RefusalReason) {
        reason = refusalReason.reason
    }

    static let badAudience = RowError("BadAudience")
    static let badCollapseID = RowError(.badCollapseID)
    static let badDeviceToken = RowError(.badDeviceToken)
    static let badEnvironment = RowError("BadEnvironment")
    static let badExpiration = RowError(.badExpirationDate)
    static let badGiveUpAt = RowError("BadGiveUpAt")
    static let badMessageID = RowError(.badMessageID)
    static let badPayload = RowError(.badPayload)
    static let badPriority = RowError(.badPriority)
    static let badPushType = RowError(.invalidPushType)
    static let badSendAfter = RowError("BadSendAfter")
    static let badTemplate = RowError("BadTemplate")
    static let badTopic = RowError(.badTopic)
    static let missingDeviceToken = RowError(.missingDeviceToken)
    static let missingTopic = RowError(.missingTopic)
    static let payloadEmpty = RowError(.payloadEmpty)
    static let payloadTooLarge = RowError(.payloadTooLarge)
    static let tooManyTokens = RowError("TooManyTokens")

    /// The error for a column that is not text, or too long.
    init(_ column: QueueColumn) {
        switch column {
        case .deviceToken: self = .badDeviceToken
        case .topic: self = .badTopic
        case .payload: self = .badPayload
        case .priority: self = .badPriority
        case .expiration: self = .badExpiration
        case .collapseID: self = .badCollapseID
        case .pushType: self = .badPushType
        case .sendAfter, .timeQueued: self = .badSendAfter
        case .giveUpAt: self = .badGiveUpAt
        case .environment: self = .badEnvironment
        case .service: self = RowError("BadService")
        case .audience: self = .badAudience
        case .template, .parameters: self = .badTemplate
        }
    }
}
