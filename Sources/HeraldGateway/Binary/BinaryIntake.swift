import HeraldMailbox
import HeraldModel
import HeraldTrust
import HeraldWire

/// Whom a connection of the binary interface sends to: one app, for the interface has no place for a topic.
struct BinaryStanding {
    let certificate: ProviderCertificateIdentity
    /// Nil if the certificate names several topics and none in its subject, or one that wants a provider token.
    let app: App?
    let kind: PushType
    /// The app's number; nil as long as no device has registered it.
    private(set) var number: AppNumber?

    init(_ certificate: ProviderCertificateIdentity, _ environment: PushEnvironment) {
        self.certificate = certificate
        let topic = certificate.defaultTopic ?? certificate.subjectTopic
        let kind = topic.map(TopicKind.kind(of:)) ?? .alert
        self.kind = kind
        app = kind == .liveactivity || kind == .location ? nil : topic.map { App(topic: $0, environment: environment) }
    }

    /// Looks for the app's number, if it was not there before.
    mutating func refresh(_ admission: Admission) {
        if number == nil { number = app.flatMap { admission.number(of: $0) } }
    }
}

/// One notification of the binary interface: to whom, and whether it can be taken.
///
/// The order of its questions is that of the HTTP/2 API: topic, payload, device token.
struct BinaryIntake {
    /// What a notification came to.
    enum Result {
        /// A notification for a registration of that generation.
        case notification(Notification, generation: UInt32)
        /// A notification that no app could read, which is taken all the same.
        case unreadable(Notification, generation: UInt32)
        case refused(Refusal)
    }

    let admission: Admission
    let rules: RequestRules
    /// How long a notification may be stored at the longest.
    let longestStorage: Duration

    /// Decides about a notification that came at `now`.
    func decide(
        _ request: BinaryNotification,
        _ standing: BinaryStanding,
        ids: inout IdentifierSource,
        now: WallTime
    ) -> Result {
        guard let app = standing.app else {
            return .refused(Refusal(.missingTopic, "the certificate's subject names no topic to send to"))
        }
        let isReadable = RequestParser.isObject(request.payload)
        guard isReadable || rules.takesUnreadablePayloads else {
            return .refused(.unreadable)
        }
        // "It is an error to use this priority [10] for a push that contains only the content-available key" (Binary
        // Provider API). Only who says 10 is held to it: the older forms cannot say anything else.
        let isSilent = isReadable && standing.kind == .alert && PayloadScanner.isSilent(request.payload)
        if isSilent, request.priority == .immediate {
            return .refused(Refusal(.badPriority, "a payload that only wakes its app has priority 5"))
        }
        switch admission.open(request.token, for: app, number: standing.number) {
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
                pushType: isSilent ? .background : standing.kind,
                collapseID: nil,
                payload: request.payload
            )
            return isReadable
                ? .notification(notification, generation: contents.generation)
                : .unreadable(notification, generation: contents.generation)
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
