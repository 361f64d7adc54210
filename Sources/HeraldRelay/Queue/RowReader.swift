import Foundation
import HeraldModel
import HeraldProvider

/// What is to be done with a row.
enum RowPlan: Sendable {
    /// It is final before anything is sent.
    case final(FinalStatus, reason: String)
    /// Its time has not come.
    case wait(WallTime)
    /// It is for many tokens.
    case spread([String])
    /// It is for the devices of a user.
    case audience(String, topic: String)
    /// It has to be filled from a template before it can be sent.
    case template(String)
    case send(RowOrder)
}

/// A row as it can be sent.
struct RowOrder: Sendable {
    let request: PushRequest
    let topic: Topic
    let environment: PushEnvironment?
    /// The name of the service that minted the token, where the row or the device says so.
    let service: String?
    /// When it is worth nothing any more.
    let deadline: WallTime
}

/// Where a row was sent to, and as what.
struct RowWay: Hashable, Sendable {
    let id: NotificationID
    let topic: Topic
    let environment: PushEnvironment?
    let service: String?
}

/// Reads rows that anybody may have written: whatever is in one, its plan is a reason at worst.
struct RowReader: Sendable {
    /// The most tokens of one row.
    static let maximumTokens = 1000

    /// September 2001: an earlier moment is a span of seconds that somebody wrote for one, and would make the service drop
    /// the notification of every device that is away.
    private static let oldestExpiration = WallTime(seconds: 1_000_000_000)

    var longestLife: Duration

    /// Says what is to be done with a row.
    /// - Parameters:
    ///   - row: The row.
    ///   - now: The moment.
    ///   - filled: What a template was filled to; nil where none is to be.
    /// - Returns: The plan.
    func plan(_ row: QueueRow, at now: WallTime, payload filled: [UInt8]? = nil) -> RowPlan {
        do {
            return try read(row, now, filled)
        } catch {
            return .final(.refused, reason: error.reason)
        }
    }

    /// Where a row that may have been sent was sent to, whatever has become of its time and its device since; nil if it
    /// is none that can have been sent.
    func way(of row: QueueRow) -> RowWay? {
        do {
            guard let topic = try text(row, .topic).flatMap({ Topic($0) }), row[.audience] == .null,
                let token = try text(row, .deviceToken), !token.hasPrefix("["),
                let id = row.apnsID.flatMap({ NotificationID($0) })
            else { return nil }
            return RowWay(id: id, topic: topic, environment: try environment(row), service: try service(row))
        } catch {
            return nil
        }
    }

    /// When a row is worth nothing any more.
    /// - Throws: ``RowFault``.
    func deadline(of row: QueueRow, at now: WallTime) throws(RowFault) -> WallTime {
        let queued = queued(row) ?? now
        let start = try moment(row, .sendAfter)
        let end = try moment(row, .giveUpAt)
        return end ?? max(queued, start ?? queued) + longestLife
    }

    /// When a row was queued, as far as it can be read.
    func queued(_ row: QueueRow) -> WallTime? {
        row[.timeQueued].text.flatMap(StoredMoment.read)
    }

    private func read(_ row: QueueRow, _ now: WallTime, _ filled: [UInt8]?) throws(RowFault) -> RowPlan {
        let deadline = try deadline(of: row, at: now)
        // Of one that may have been sent, nobody could say by then whether it was.
        if now >= deadline { return .final(.expired, reason: row.isUncertain ? "Uncertain" : "GiveUpAt") }
        if let start = try moment(row, .sendAfter), start > now { return .wait(start) }
        guard let topicText = try text(row, .topic), !topicText.isEmpty else { throw .missingTopic }
        guard let topic = Topic(topicText) else { throw .badTopic }
        if let audience = try text(row, .audience) {
            guard row[.deviceToken] == .null, !audience.isEmpty else { throw .badAudience }
            return .audience(audience, topic: topicText)
        }
        guard let token = try text(row, .deviceToken), !token.isEmpty else { throw .missingDeviceToken }
        if token.hasPrefix("[") { return .spread(try RowReader.tokens(token)) }
        guard let deviceToken = DeviceToken(token) else { throw .badDeviceToken }
        if row.device?.isDead == true { return .final(.refused, reason: Rejection.unregistered.reason) }
        if let template = try text(row, .template), filled == nil {
            guard row[.payload] == .null else { throw .badTemplate }
            return .template(template)
        }
        let request = try request(row, deviceToken, topic, filled)
        return .send(
            RowOrder(
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
        _ token: DeviceToken,
        _ topic: Topic,
        _ filled: [UInt8]?
    ) throws(RowFault) -> PushRequest {
        guard let payload = filled ?? row[.payload].bytes, !payload.isEmpty else { throw .payloadEmpty }
        var type = PushType.allCases.first { !$0.topicSuffix.isEmpty && topic.name.hasSuffix($0.topicSuffix) } ?? .alert
        let named = try text(row, .pushType)
        if let named {
            guard let known = PushType(rawValue: named) else { throw .badPushType }
            type = known
        } else if type == .alert, PayloadScanner.isSilent(payload) {
            type = .background
        }
        guard payload.count <= type.maximumPayloadBytes else { throw .payloadTooLarge }
        guard case .object = PayloadScanner.scan(payload) else { throw .badPayload }
        var request = PushRequest(token: token, topic: topic, payload: payload, pushType: type)
        if row[.priority] != .null {
            guard let number = row[.priority].int.flatMap({ UInt8(exactly: $0) }),
                let priority = Priority(rawValue: number)
            else { throw .badPriority }
            request.priority = priority
        } else if type == .background {
            // None means 10, which this kind never has.
            request.priority = .conserving
        }
        if row[.expiration] != .null {
            guard let moment = row[.expiration].text.flatMap(StoredMoment.read),
                moment.seconds == 0 || moment >= RowReader.oldestExpiration
            else {
                throw .badExpiration
            }
            request.expiration = moment.seconds == 0 ? .once : .at(moment)
        }
        if let collapse = try text(row, .collapseID) {
            guard (1...64).contains(collapse.utf8.count), collapse.utf8.allSatisfy({ (0x20..<0x7F).contains($0) })
            else {
                throw .badCollapseID
            }
            request.collapseID = collapse
        }
        guard let id = row.apnsID.flatMap({ NotificationID($0) }) else { throw .badMessageID }
        request.id = id
        return request
    }

    private func service(_ row: QueueRow) throws(RowFault) -> String? {
        try text(row, .service) ?? row.device?.service
    }

    private func environment(_ row: QueueRow) throws(RowFault) -> PushEnvironment? {
        guard let name = try text(row, .environment) ?? row.device?.environment else { return nil }
        switch name {
        case "production": return .production
        case "sandbox", "development": return .sandbox
        default: throw .badEnvironment
        }
    }

    private func moment(_ row: QueueRow, _ column: QueueColumn) throws(RowFault) -> WallTime? {
        guard row[column] != .null else { return nil }
        guard let moment = row[column].text.flatMap(StoredMoment.read) else {
            throw column == .sendAfter ? .badSendAfter : .badGiveUpAt
        }
        return moment
    }

    /// A column's text; nil for null.
    private func text(_ row: QueueRow, _ column: QueueColumn) throws(RowFault) -> String? {
        guard row[column] != .null else { return nil }
        guard let bytes = row[column].bytes, bytes.count <= column.limit, let text = row[column].text,
            !text.utf8.contains(0)
        else { throw RowFault(column) }
        return text
    }

    /// The tokens of a row that is for many: a JSON array of texts.
    ///
    /// A token that is none becomes a part that is refused.
    static func tokens(_ json: String) throws(RowFault) -> [String] {
        guard let list = try? JSONDecoder().decode([String].self, from: Data(json.utf8)), !list.isEmpty else {
            throw .badDeviceToken
        }
        guard list.count <= maximumTokens else { throw .tooManyTokens }
        var seen: Set<String> = []
        // A part of a part would be many again.
        return list.map { $0.hasPrefix("[") ? "?" : $0 }.filter { seen.insert($0.lowercased()).inserted }
    }
}

/// What is wrong with a row, as the service would call it where it has a word for it.
struct RowFault: Error, Hashable {
    let reason: String

    private init(_ reason: String) {
        self.reason = reason
    }

    private init(_ rejection: Rejection) {
        reason = rejection.reason
    }

    static let badAudience = RowFault("BadAudience")
    static let badCollapseID = RowFault(.badCollapseID)
    static let badDeviceToken = RowFault(.badDeviceToken)
    static let badEnvironment = RowFault("BadEnvironment")
    static let badExpiration = RowFault(.badExpirationDate)
    static let badGiveUpAt = RowFault("BadGiveUpAt")
    static let badMessageID = RowFault(.badMessageID)
    static let badPayload = RowFault(.badPayload)
    static let badPriority = RowFault(.badPriority)
    static let badPushType = RowFault(.invalidPushType)
    static let badSendAfter = RowFault("BadSendAfter")
    static let badTemplate = RowFault("BadTemplate")
    static let badTopic = RowFault(.badTopic)
    static let missingDeviceToken = RowFault(.missingDeviceToken)
    static let missingTopic = RowFault(.missingTopic)
    static let payloadEmpty = RowFault(.payloadEmpty)
    static let payloadTooLarge = RowFault(.payloadTooLarge)
    static let tooManyTokens = RowFault("TooManyTokens")

    /// For a column that holds no text, or too much of it.
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
        case .service: self = RowFault("BadService")
        case .audience: self = .badAudience
        case .template, .parameters: self = .badTemplate
        }
    }
}
