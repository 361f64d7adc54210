import HeraldModel
import HeraldTrust
import HeraldWire

/// The one app that a binary connection sends to: the interface has no field for a topic.
struct BinaryAuthorization {
    let certificate: ProviderCertificateIdentity
    /// nil if the certificate has several topics and none in its subject, or a topic that needs a provider token.
    let app: App?
    let environment: PushEnvironment
    let kind: PushType
    /// The app's number; nil until a device registers it.
    private(set) var number: AppNumber?
    /// The use that claims the topic; nil if a team owns it, or the certificate names no team.
    private(set) var use: TopicUse?
    /// The certificate's credential.
    private(set) var sender = SenderNumber.unknown
    private var generation: UInt64?

    init(_ certificate: ProviderCertificateIdentity, _ environment: PushEnvironment) {
        self.certificate = certificate
        self.environment = environment
        let topic = certificate.defaultTopic ?? certificate.subjectTopic
        let kind = topic.map(TopicKind.kind(of:)) ?? .alert
        self.kind = kind
        app = kind == .liveactivity || kind == .location ? nil : topic.map { App(topic: $0, environment: environment) }
    }

    /// Looks up the app's number if it is not known yet, and the topic's owner if the owners may have changed.
    mutating func refresh(_ admission: Admission) {
        if number == nil { number = app.flatMap { admission.number(of: $0) } }
        let generation = admission.tokens.generation
        guard generation != self.generation else { return }
        self.generation = generation
        sender = admission.sender(of: certificate)
        guard let app else { return }
        let scope = TopicScope.topics(certificate.topics)
        let permission = admission.tokens.permission(for: app.topic, team: certificate.team, scope: scope)
        use = if case .firstUse(let use) = permission { use } else { nil }
    }
}

/// Turns a frame of the binary interface into a notification or a refusal.
///
/// The order of the checks is that of the HTTP/2 API: topic, payload, device token.
struct BinaryValidator {
    let admission: Admission
    let rules: RequestRules
    /// Maximum storage time of a notification.
    let longestStorage: Duration

    /// Validates a notification.
    func decide(
        _ request: BinaryNotification,
        _ authorization: BinaryAuthorization,
        ids: inout IdentifierSource,
        now: WallTime
    ) -> RequestValidator.Result {
        guard let app = authorization.app else {
            return .refused(Refusal(.missingTopic, "the certificate's subject names no topic to send to"))
        }
        let payload = PayloadScanner.survey(request.payload)
        guard payload.isObject || rules.takesUnreadablePayloads else {
            return .refused(.unreadable)
        }
        // "It is an error to use this priority [10] for a push that contains only the content-available key" (Binary
        // Provider API). The rule applies to a declared 10 only: the older forms have no priority.
        let isSilent = payload.isSilent && authorization.kind == .alert
        if isSilent, request.priority == .immediate {
            return .refused(Refusal(.badPriority, "a payload that only wakes its app has priority 5"))
        }
        switch admission.open(request.token.own, for: app, number: authorization.number) {
        case .refused(let refusal):
            return .refused(refusal)
        case .slot(let contents):
            let notification = Notification(
                id: request.identifier.map { ids.identifier(ending: $0) } ?? ids.identifier(),
                uniqueID: ids.identifier(),
                slot: contents.slot,
                received: now,
                storedUntil: Self.expiration(request.expiration).storedUntil(now: now, longest: longestStorage),
                priority: request.priority ?? (isSilent ? .conserving : .immediate),
                pushType: isSilent ? .background : authorization.kind,
                collapseID: nil,
                payload: request.payload,
                sender: authorization.sender
            )
            return payload.isObject
                ? .notification(
                    notification,
                    generation: contents.generation,
                    authorization.use,
                    hasHerald: payload.hasHerald
                )
                : .unreadable(notification, generation: contents.generation, authorization.use)
        }
    }

    private static func expiration(_ seconds: UInt32?) -> Expiration {
        switch seconds {
        case nil: .unspecified
        case 0?: .once
        case let seconds?: .at(WallTime(seconds: Int64(seconds)))
        }
    }
}
