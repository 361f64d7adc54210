import HeraldMailbox
import HeraldModel
import HeraldTrust
import HeraldWire

/// The facts of a refused request for the journal, as far as they are known.
struct RefusedRequest {
    let id: NotificationID
    /// The topic that it names or implies, in the environment that its client selected.
    let topic: Topic?
    let environment: PushEnvironment
    /// The slot of its device token; nil if the token does not open.
    let slot: Slot?
    let facts: JournalRequest

    /// Reads a request of the HTTP/2 API, which has its reply's identifier.
    init(
        _ request: PendingRequest,
        by authorization: ProviderAuthorization,
        in environment: PushEnvironment,
        _ admission: Admission
    ) {
        let fields = request.fields
        id = request.answer.id?.id ?? .random()
        self.environment = environment
        if request.answer.isAboutChannels {
            topic = RequestRoute(fields).bundle
            slot = nil
        } else {
            let named = fields.withValue(of: .apnsTopic) { Topic(utf8: $0) }
            topic = named ?? authorization.certificate?.defaultTopic
            slot = Self.slot(of: fields, admission)
        }
        let priority = fields.withValue(of: .apnsPriority) { value in
            Priority.allCases.first { value.elementsEqual(String($0.rawValue).utf8) }
        }
        facts = JournalRequest(
            sender: authorization.sender,
            pushType: RequestParser.pushType(fields) ?? nil,
            priority: priority ?? nil,
            payloadBytes: request.received.byteCount
        )
    }

    /// Reads a notification of the binary interface: as it came, as it was posted, or only its identifier.
    init(
        _ request: BinaryNotification?,
        posted: InFlightNotifications.Posted?,
        identifier: UInt32?,
        by authorization: BinaryAuthorization,
        ids: inout IdentifierSource,
        _ admission: Admission
    ) {
        id = posted?.id ?? identifier.map { ids.identifier(ending: $0) } ?? ids.identifier()
        topic = authorization.app?.topic
        environment = authorization.environment
        slot = posted?.slot ?? request?.token.own.flatMap { admission.slot(of: $0) }
        facts =
            posted?.request
            ?? JournalRequest(
                sender: authorization.sender,
                priority: request?.priority,
                payloadBytes: request?.payload.count ?? 0
            )
    }

    /// The slot of the device token in a request's path; nil if there is none, or it does not open.
    static func slot(of fields: RequestFields, _ admission: Admission) -> Slot? {
        let token = RequestParser.pathHasOneToken(fields) ? RequestParser.token(fields) : nil
        return token.flatMap { admission.slot(of: $0) }
    }

    /// The journal's line.
    func line(_ refusal: Refusal, _ admission: Admission, at now: WallTime) -> JournalEvent {
        let app = topic.flatMap { admission.number(of: App(topic: $0, environment: environment)) }
        return JournalEvent(
            refused: JournalRefusal(
                reason: refusal.refusalReason,
                explanation: refusal.why,
                topic: app == nil ? topic?.name : nil,
                environment: environment
            ),
            id: id,
            device: slot?.device,
            app: app ?? (topic == nil ? slot?.app : nil),
            at: now,
            request: facts
        )
    }
}
