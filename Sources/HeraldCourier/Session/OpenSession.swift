import HeraldMailbox
import HeraldModel
import HeraldWire

/// A session between CONNACK and its end: its subscriptions, and the requests of the device in the order of their arrival.
struct OpenSession {
    /// What comes of a packet or of an answer of the registry.
    struct Reaction {
        enum End {
            case silently
            case because(MQTTReasonCode, String?, SessionNote?)
        }

        var actions: [SessionAction] = []
        var end: End?

        static let none = Reaction()

        static func end(
            _ code: MQTTReasonCode,
            _ reason: String? = nil,
            note: SessionNote? = .protocolError
        ) -> Reaction {
            Reaction(end: .because(code, reason, note))
        }
    }

    /// Something that the device wants, which takes the registry.
    enum Operation {
        case subscribe(MQTTSubscribe)
        case unsubscribe(MQTTUnsubscribe)
        case settings(SettingsMessage, App, MQTTPublish)
        case power(PowerMessage, MQTTPublish)
        case token(DeviceToken, App, MQTTPublish)
        /// Answered without the registry, in its turn.
        case refuse(MQTTReasonCode, MQTTPublish)
        /// In its turn as well: a device that publishes at QoS 0 has no other way to know that it was heard.
        case ping

        /// Whether it is a message that waits for its PUBACK.
        var isAcknowledgedPublish: Bool {
            switch self {
            case .subscribe, .unsubscribe, .ping: false
            case .settings(_, _, let publish), .power(_, let publish), .token(_, _, let publish),
                .refuse(_, let publish):
                publish.packetIdentifier != nil
            }
        }
    }

    /// Where the operation at hand stands.
    indirect enum Step {
        case examining(MQTTSubscribe)
        case findingChannels(MQTTSubscribe, stale: [AppNumber])
        case registering(MQTTSubscribe, [App], stale: [AppNumber])
        case keepingSubscriptions(MQTTSuback, then: [SessionAction], before: SessionSubscriptions)
        case unregistering(MQTTUnsubscribe, [App])
        case keepingRest(MQTTUnsuback)
        case changingSettings(MQTTPublish)
        case changingPower(PowerMessage, MQTTPublish)
        case examiningToken(App, MQTTPublish)
        case findingToken(MQTTPublish)

        var publish: MQTTPublish? {
            switch self {
            case .changingSettings(let publish), .changingPower(_, let publish), .examiningToken(_, let publish),
                .findingToken(let publish):
                publish
            default: nil
            }
        }
    }

    let version: MQTTVersion
    let device: DeviceNumber
    let environment: PushEnvironment
    /// Seconds that the session outlives the connection.
    var expiryInterval: UInt32
    /// What CONNECT asked for: a session that had none cannot be given one by DISCONNECT (MQTT 5 §3.14.2.2.2).
    let connectExpiryInterval: UInt32
    var subscriptions: SessionSubscriptions
    /// The key of the tokens that the device had been sent when the connection began, or is sent as it subscribes; nil if
    /// it is not known.
    var tokenKey: UInt32?
    /// The key of those that it was sent since, at the earliest.
    var newTokenKey: UInt32?
    /// Whether the store has a record of the session.
    var isStored = false
    /// Whether answers may carry reason strings ([MQTT-3.1.2-29]).
    let reportsProblems: Bool
    /// What is to be done after the operation at hand.
    var waiting: [Operation] = []
    var step: Step?
    /// Those of the SUBSCRIBE at hand that there are.
    var knownChannels: Set<CourierFilter> = []

    init(
        version: MQTTVersion,
        device: DeviceNumber,
        environment: PushEnvironment,
        expiryInterval: UInt32,
        connectExpiryInterval: UInt32,
        subscriptions: SessionSubscriptions,
        reportsProblems: Bool
    ) {
        self.version = version
        self.device = device
        self.environment = environment
        self.expiryInterval = expiryInterval
        self.connectExpiryInterval = connectExpiryInterval
        self.subscriptions = subscriptions
        self.reportsProblems = reportsProblems
    }

    /// The session as the store keeps it while the device is connected; nil if it ends with the connection.
    var record: SessionRecord? {
        guard expiryInterval > 0 else { return nil }
        var record = SessionRecord(
            subscriptions: subscriptions.record,
            expiryInterval: expiryInterval,
            environment: environment,
            tokenKey: tokenKey
        )
        record.environments = subscriptions.environments
        return record
    }

    /// What becomes of the stored session when the connection is gone.
    ///
    /// It says that the device has the tokens that it was sent; who knows of one under way takes that back.
    var departingRecord: SessionDeparture.Record {
        guard var record else { return isStored ? .drop : .untouched }
        record.tokenKey = newTokenKey
        return .keep(record)
    }

    mutating func received(_ packet: MQTTPacket, _ limits: CourierConfiguration) -> Reaction {
        switch packet {
        case .publish(let publish): return receivedPublish(publish, limits)
        case .subscribe(let subscribe): return enqueue(.subscribe(subscribe), limits)
        case .unsubscribe(let unsubscribe): return enqueue(.unsubscribe(unsubscribe), limits)
        case .pingreq: return enqueue(.ping, limits)
        case .disconnect(let disconnect): return receivedDisconnect(disconnect, limits)
        case .puback:
            // Taken by the window before it comes here.
            return .none
        case .pubrel(let answer):
            let code: MQTTReasonCode = version == .v5 ? .packetIdentifierNotFound : .success
            return Reaction(actions: [
                .send(.pubcomp(MQTTPublishAnswer(packetIdentifier: answer.packetIdentifier, reasonCode: code)))
            ])
        case .pubrec, .pubcomp:
            return .end(.protocolError, "an answer of QoS 2 to what was never sent at it")
        case .connect:
            // [MQTT-3.1.0-2]
            return .end(.protocolError, "a second CONNECT")
        case .auth:
            return .end(.protocolError, "no authentication method was agreed on")
        case .connack, .suback, .unsuback, .pingresp:
            return .end(.protocolError, "a packet that only servers send")
        }
    }

    /// DISCONNECT may shorten or lengthen the session, but not make one ([MQTT-3.14.4-1] ff.).
    ///
    /// The will goes with it.
    private mutating func receivedDisconnect(_ disconnect: MQTTDisconnect, _ limits: CourierConfiguration) -> Reaction {
        if let interval = disconnect.properties.sessionExpiryInterval {
            guard interval == 0 || connectExpiryInterval > 0 else {
                return .end(.protocolError, "the session expiry interval of CONNECT was 0")
            }
            expiryInterval = min(interval, UInt32(clamping: limits.longestSession.components.seconds))
        }
        return Reaction(end: .silently)
    }

    /// Adds an operation, and begins it if nothing is before it.
    mutating func enqueue(_ operation: Operation, _ limits: CourierConfiguration) -> Reaction {
        waiting.append(operation)
        return proceed(limits)
    }

    /// Begins operations until one has to wait.
    mutating func proceed(_ limits: CourierConfiguration) -> Reaction {
        var all = Reaction()
        while step == nil, all.end == nil, !waiting.isEmpty {
            let reaction = begin(waiting.removeFirst(), limits)
            all.actions += reaction.actions
            all.end = reaction.end
        }
        // A session is idle nearly always.
        if waiting.isEmpty { waiting = [] }
        return all
    }

    private mutating func begin(_ operation: Operation, _ limits: CourierConfiguration) -> Reaction {
        switch operation {
        case .subscribe(let subscribe): beginSubscribe(subscribe, limits)
        case .unsubscribe(let unsubscribe): beginUnsubscribe(unsubscribe)
        case .settings(let message, let app, let publish):
            request(.setEnabled(message.enabled, app), .changingSettings(publish))
        case .power(let message, let publish):
            request(.setSavingPower(message.saving), .changingPower(message, publish))
        case .token(let token, let app, let publish):
            request(.examine([token], for: app.topic, in: app.environment), .examiningToken(app, publish))
        case .refuse(let code, let publish): refuse(code, publish)
        // [MQTT-3.12.4-1]
        case .ping: Reaction(actions: [.send(.pingresp)])
        }
    }

    mutating func request(_ request: SessionRequest, _ next: Step) -> Reaction {
        step = next
        return Reaction(actions: [.request(request)])
    }

    /// The registry's answer to the operation at hand.
    mutating func completed(_ result: SessionResult, _ limits: CourierConfiguration) -> Reaction {
        guard let current = step else { return .none }
        step = nil
        var all = finish(current, result, limits)
        guard all.end == nil, step == nil else { return all }
        let rest = proceed(limits)
        all.actions += rest.actions
        all.end = rest.end
        return all
    }

    private mutating func finish(_ current: Step, _ result: SessionResult, _ limits: CourierConfiguration) -> Reaction {
        switch current {
        case .examining(let subscribe): haveExamined(subscribe, result, limits)
        case .findingChannels(let subscribe, let stale): haveFoundChannels(subscribe, stale, result, limits)
        case .registering(let subscribe, let wanted, let stale):
            haveRegistered(subscribe, wanted, stale, result, limits)
        case .keepingSubscriptions(let suback, let then, let before): haveKept(suback, then, before, result)
        case .unregistering(let unsubscribe, let apps): haveUnregistered(unsubscribe, apps, result)
        case .keepingRest(let unsuback):
            // The registration is gone whether or not the record of the session could be written: a record that names
            // an app which is not registered is read without it.
            Reaction(actions: [.send(.unsuback(unsuback))])
        case .changingSettings(let publish): haveChanged(publish, result)
        case .changingPower(let message, let publish): haveChangedPower(message, publish, result)
        case .examiningToken(let app, let publish): haveExaminedToken(app, publish, result)
        case .findingToken(let publish): haveFoundToken(publish, result)
        }
    }
}
