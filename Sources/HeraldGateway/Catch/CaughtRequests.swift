import HeraldModel
import HeraldTrust

/// Requests that are caught for people who test.
extension RequestHandler {
    /// Keeps what is known of a request before it is looked at, if it is a notification or a broadcast that is caught.
    func beginCatch(_ request: PendingRequest, _ environment: PushEnvironment, _ now: WallTime) {
        let fields = request.fields
        let route = request.isAboutChannels ? RequestRoute(fields) : .notification
        let topic: Topic?
        switch route {
        case .notification:
            let named = fields.withValue(of: .apnsTopic) { Topic(utf8: $0) }
            topic = named ?? authorization.certificate?.defaultTopic
        case .broadcast(let bundle):
            topic = bundle
        default:
            return
        }
        guard service.catcher.catches(topic) else { return }
        let tag = fields.text(of: .heraldTag)
        request.caught = CaughtDraft(
            CaughtMessage(
                time: now,
                environment: environment,
                topic: topic,
                sender: nil,
                headers: fields.caught,
                payload: request.body,
                tag: CatchTag.read(tag, request.body)
            )
        )
    }

    /// Keeps a request that was accepted.
    func endCatch(_ request: PendingRequest, _ reply: Reply) {
        guard request.caught != nil else { return }
        request.caught?.message.sender = authorization.caughtSender
        let isWithheld = request.drill?.withholds != nil
        let words = String(decoding: reply.explanation, as: UTF8.self)
        endCatch(request, status: isWithheld ? nil : reply.status, reason: nil, words.isEmpty ? nil : words)
    }

    /// Keeps a request that was refused.
    func endCatch(_ request: PendingRequest, _ refusal: Refusal) {
        guard request.caught != nil else { return }
        let refusalReason = refusal.refusalReason
        let isUnknown = [.missingProviderToken, .invalidProviderToken, .expiredProviderToken].contains(refusalReason)
        if !isUnknown { request.caught?.message.sender = authorization.caughtSender }
        endCatch(request, status: ReplyStatus(refusalReason), reason: refusalReason.reason, refusal.why)
    }

    /// Keeps a request that a drill loses.
    func endCatchWithoutAnswer(_ request: PendingRequest) {
        request.caught?.message.sender = authorization.caughtSender
        endCatch(request, status: nil, reason: nil, "a drill loses it: the provider gets no answer")
    }

    private func endCatch(_ request: PendingRequest, status: ReplyStatus?, reason: String?, _ explanation: String?) {
        guard let draft = request.caught else { return }
        request.caught = nil
        var message = draft.message
        message.id = request.replyID?.text ?? message.id
        message.uniqueID = request.replyUniqueID?.text ?? message.uniqueID
        message.status = status?.rawValue
        message.reason = reason
        message.explanation = explanation
        service.catcher.keep(message)
    }
}

extension RequestFields {
    /// The fields that are caught: those of APNs and Herald, without `authorization`.
    fileprivate var caught: [String: String] {
        var all: [String: String] = [:]
        for field in RequestField.allCases {
            guard let name = field.caughtName, let value = text(of: field) else { continue }
            all[name] = value
        }
        return all
    }

    fileprivate func text(of field: RequestField) -> String? {
        withValue(of: field) { String(decoding: $0, as: UTF8.self) }
    }
}

extension RequestField {
    /// The name of a field that is caught; nil for others.
    fileprivate var caughtName: String? {
        switch self {
        case .method, .path, .authority, .host, .authorization: nil
        case .apnsID: "apns-id"
        case .apnsExpiration: "apns-expiration"
        case .apnsPriority: "apns-priority"
        case .apnsTopic: "apns-topic"
        case .apnsPushType: "apns-push-type"
        case .apnsCollapseID: "apns-collapse-id"
        case .apnsChannelID: "apns-channel-id"
        case .apnsRequestID: "apns-request-id"
        case .heraldExplain: "herald-explain"
        case .heraldTag: "herald-tag"
        }
    }
}

extension IdentifierText {
    fileprivate var text: String { withBytes { String(decoding: $0, as: UTF8.self) } }
}

extension ProviderAuthorization {
    /// The credential of the last request that was authenticated.
    var caughtSender: CaughtMessage.Sender? {
        if let certificate { return .certificate(certificate.serial) }
        return keyID.map { .key($0) }
    }
}
