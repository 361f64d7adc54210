import HeraldJSON
import HeraldModel
import HeraldProvider

/// Plan for a row.
enum RowPlan: Sendable {
    /// Final without sending.
    case final(FinalStatus, RowError)
    /// Not due yet.
    case wait(WallTime)
    /// Addressed to many tokens.
    case fanOut([String])
    /// Addressed to the devices of a user.
    case devices(of: String, topic: String)
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
    static let maximumTokens = 1000

    var longestLife: Duration

    /// Plans a row; `filled` is its filled template, nil if there is none or it is not filled yet.
    func plan(_ row: QueueRow, at now: WallTime, payload filled: [UInt8]? = nil) -> RowPlan {
        do {
            return try read(row, now, filled)
        } catch {
            return .final(.refused, error)
        }
    }

    /// The target of a row that may have been sent, whatever its time and device are now; nil if it cannot have been sent.
    func target(of row: QueueRow) -> SentTarget? {
        do {
            guard let topic = try text(row, .topic).flatMap({ Topic($0) }), row[.userName] == .null,
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
        let queued = try row.moment(.timeQueued, at: now) ?? now
        let start = try row.moment(.sendAfter, at: now)
        let end = try row.moment(.giveUpAt, at: now)
        return end ?? max(queued, start ?? queued) + longestLife
    }

    private func read(_ row: QueueRow, _ now: WallTime, _ filled: [UInt8]?) throws(RowError) -> RowPlan {
        let deadline = try deadline(of: row, at: now)
        // If it may have been sent, nothing can tell by then whether it was.
        if now >= deadline { return .final(.expired, RowError(row.isUncertain ? .uncertain : .giveUpAt)) }
        if let start = try row.moment(.sendAfter, at: now), start > now { return .wait(start) }
        guard let topicText = try text(row, .topic), !topicText.isEmpty else { throw RowError(.missingTopic) }
        guard let topic = Topic(topicText) else { throw RowError(.badTopic) }
        if let user = try text(row, .userName) {
            guard row[.deviceToken] == .null, !user.isEmpty else { throw RowError(.badUserName) }
            return .devices(of: user, topic: topicText)
        }
        guard let token = try text(row, .deviceToken), !token.isEmpty else { throw RowError(.missingDeviceToken) }
        if token.hasPrefix("[") { return .fanOut(try RowReader.tokens(token)) }
        guard let deviceToken = PushToken(token) else { throw RowError(.badDeviceToken) }
        if let device = row.device {
            guard let isDead = device.isDead else { throw RowError(.badDeviceTime) }
            if isDead { throw RowError(.unregistered) }
        }
        if let template = try text(row, .template), filled == nil {
            guard row[.payload] == .null else { throw RowError(.badTemplate) }
            return .template(template)
        }
        let request = try request(row, deviceToken, topic, at: now, payload: filled)
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
        at now: WallTime,
        payload filled: [UInt8]?
    ) throws(RowError) -> PushRequest {
        guard let payload = filled ?? row[.payload].bytes, !payload.isEmpty else { throw RowError(.payloadEmpty) }
        var type = PushType.allCases.first { !$0.topicSuffix.isEmpty && topic.name.hasSuffix($0.topicSuffix) } ?? .alert
        let survey = PayloadScanner.survey(payload)
        let named = try text(row, .pushType)
        if let named {
            guard let known = PushType(rawValue: named) else { throw RowError(.invalidPushType) }
            type = known
        } else if type == .alert, survey.isSilent {
            type = .background
        }
        let origin = filled == nil ? "`payload`" : "the filled template"
        guard payload.count <= type.maximumPayloadBytes else {
            let limit = "\(origin) may have at most \(type.maximumPayloadBytes) bytes as \(type.rawValue)"
            throw RowError(.payloadTooLarge, limit)
        }
        guard survey.isObject else { throw RowError(.badPayload, "\(origin) must be a JSON object") }
        var request = PushRequest(token: token, topic: topic, payload: payload, pushType: type)
        if row[.priority] != .null {
            guard let number = row[.priority].int.flatMap({ UInt8(exactly: $0) }),
                let priority = Priority(rawValue: number)
            else { throw RowError(.badPriority) }
            request.priority = priority
        } else if type == .background {
            // Without it the priority is 10, which background pushes do not allow.
            request.priority = .conserving
        }
        if row[.expiration].int == 0 {
            request.expiration = .once
        } else if let moment = try row.moment(.expiration, at: now) {
            request.expiration = .at(moment)
        }
        if let collapse = try text(row, .collapseID) {
            guard CollapseID(collapse) != nil else { throw RowError(.badCollapseID) }
            request.collapseID = collapse
        }
        guard let id = row.apnsID.flatMap({ NotificationID($0) }) else { throw RowError(.badMessageID) }
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
        default: throw RowError(.badEnvironment)
        }
    }

    /// Text of a column; nil for NULL.
    private func text(_ row: QueueRow, _ column: QueueColumn) throws(RowError) -> String? {
        guard row[column] != .null else { return nil }
        guard let bytes = row[column].bytes, bytes.count <= column.limit, let text = row[column].text,
            !text.utf8.contains(0)
        else { throw RowError(column.fault) }
        return text
    }

    /// Tokens of a row for many: a JSON array of strings; an invalid token becomes a part that is refused.
    static func tokens(_ json: String) throws(RowError) -> [String] {
        guard let list = try? JSON.decode([String].self, from: Array(json.utf8)), !list.isEmpty else {
            throw RowError(.badDeviceToken)
        }
        guard list.count <= maximumTokens else { throw RowError(.tooManyTokens) }
        var seen: Set<String> = []
        // A part must not be a list itself.
        return list.map { $0.hasPrefix("[") ? "?" : $0 }.filter { seen.insert($0.lowercased()).inserted }
    }
}
