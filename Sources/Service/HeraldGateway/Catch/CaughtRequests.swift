import HeraldModel
import HeraldTrust
import NIOCore

/// Requests that are caught for people who test.
extension RequestHandler {
    /// Keeps what is known of a request before it is looked at, if it is a notification or a broadcast that is caught.
    func beginCatch(_ request: PendingRequest, _ environment: PushEnvironment, _ now: WallTime) {
        let fields = request.fields
        let route = request.answer.isAboutChannels ? RequestRoute(fields) : .notification
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
                tag: HeraldMember.tag(tag, request.body)
            )
        )
        request.caught?.message.connection = completions
        request.caught?.message.providerToken = fields.withValue(of: .authorization) { token in
            var hasher = Hasher()
            hasher.combine(bytes: token)
            return hasher.finalize()
        }
    }

    /// Keeps a request that was accepted.
    func endCatch(_ request: PendingRequest, _ reply: Reply) {
        request.caught?.message.sender = authorization.caughtSender
        let words = String(decoding: reply.explanation, as: UTF8.self)
        request.caught?.message.explanation = words.isEmpty ? nil : words
        request.caught?.message.isAccepted = true
        endCatch(request, status: request.drill?.withholds == nil ? reply.status : nil)
    }

    /// Keeps a request that was refused; `retryAfter` is in seconds.
    func endCatch(_ request: PendingRequest, _ refusal: Refusal, retryAfter: Int?) {
        guard let draft = request.caught else { return }
        let refusalReason = refusal.refusalReason
        let isUnknown = [.missingProviderToken, .invalidProviderToken, .expiredProviderToken].contains(refusalReason)
        if !isUnknown { draft.message.sender = authorization.caughtSender }
        if draft.message.slot == nil, !request.answer.isAboutChannels {
            draft.message.slot = RefusedRequest.slot(of: request.fields, service.admission)
            if draft.message.slot == nil {
                draft.message.unopenedToken = request.fields.text(of: .path)?.split(separator: "/").last.map(
                    String.init
                )
            }
        }
        let status = ReplyStatus(refusalReason)
        endCatch(request, status, reason: refusalReason.reason, refusal.why, retryAfter: retryAfter)
    }

    /// Keeps a request that was refused with a status, a reason and words.
    func endCatch(_ request: PendingRequest, _ status: ReplyStatus, reason: String?, _ why: String, retryAfter: Int?) {
        request.caught?.message.reason = reason
        request.caught?.message.explanation = why
        request.caught?.message.retryAfter = retryAfter
        endCatch(request, status: status)
    }

    /// Keeps a request that a drill leaves without an answer.
    func endCatch(_ request: PendingRequest, withoutAnswer why: String) {
        request.caught?.message.sender = authorization.caughtSender
        request.caught?.message.explanation = why
        endCatch(request, status: nil)
    }

    /// Keeps the requests that have no answer yet when the connection ends.
    func endCatchesWithoutAnswer() {
        for request in session.posted where request.caught != nil {
            request.caught?.message.sender = authorization.caughtSender
            request.caught?.message.explanation = "the connection ended before the answer"
            // The post office has it, and refuses it only if the store fails.
            request.caught?.message.isAccepted = true
            endCatch(request, status: nil)
        }
    }

    private func endCatch(_ request: PendingRequest, status: ReplyStatus?) {
        guard let draft = request.caught else { return }
        request.caught = nil
        var message = draft.message
        message.id = request.answer.id?.text ?? message.id
        message.uniqueID = request.answer.uniqueID?.text ?? message.uniqueID
        message.status = status?.rawValue
        if status != nil {
            let delay = max(.nanoseconds(0), (request.drill?.answerAt ?? .uptimeNanoseconds(0)) - eventLoop.now)
            message.answered = service.clock.now() + .nanoseconds(delay.nanoseconds)
        }
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
