import HeraldMailbox
import HeraldModel
import HeraldWire

/// An open MQTT session: its subscriptions, and the device's requests in the order of their arrival.
///
/// SUBSCRIBE, UNSUBSCRIBE and PUBLISH are carried out one after the other, so that they are answered in order.
struct MQTTSession {
    let version: MQTTVersion
    let environment: PushEnvironment
    /// Seconds that the session outlives the connection.
    private(set) var expiryInterval: UInt32
    /// The interval of CONNECT: DISCONNECT cannot lengthen an interval of 0 (MQTT 5 §3.14.2.2.2).
    private let connectExpiryInterval: UInt32
    var subscriptions: SessionSubscriptions
    /// The key of the tokens that the device had when the connection began, or is sent as it subscribes; nil if unknown.
    var tokenKey: UInt32?
    /// The key of the tokens that the device was sent since, at the earliest.
    var newTokenKey: UInt32?
    /// The tokens that the device has presented on this connection; nil if the service does not require them.
    var tokens: TokenPresentation?
    /// The newest broadcast of each channel that the device had when the connection began: filter → number.
    var broadcasts: [String: UInt64]?
    /// Whether the store has a record of the session.
    var isStored = false
    /// Whether answers may carry reason strings ([MQTT-3.1.2-29]).
    private let reportsProblems: Bool
    private var waiting: [SessionOperation] = []
    /// The operation that waits for the registry.
    private var current: SessionOperation?

    init(
        version: MQTTVersion,
        environment: PushEnvironment,
        expiryInterval: UInt32,
        connectExpiryInterval: UInt32,
        subscriptions: SessionSubscriptions,
        reportsProblems: Bool
    ) {
        self.version = version
        self.environment = environment
        self.expiryInterval = expiryInterval
        self.connectExpiryInterval = connectExpiryInterval
        self.subscriptions = subscriptions
        self.reportsProblems = reportsProblems
    }

    /// The number of requests behind the current one.
    var waitingCount: Int { waiting.count }

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
        let broadcasts = broadcasts?.filter { record.subscriptions[$0.key] != nil } ?? [:]
        record.broadcasts = broadcasts.isEmpty ? nil : broadcasts
        return record
    }

    /// The stored session after the connection.
    ///
    /// It says that the device has the tokens that it was sent; ``MessageSender`` corrects that for a token under way.
    var claimedSession: DeviceClaim.Session {
        guard var record else { return isStored ? .drop : .unchanged }
        record.tokenKey = newTokenKey
        return .keep(record)
    }

    /// The app of a packet: in the environment in which its topic is subscribed to, else in the one that the packet names,
    /// else in the connection's; nil if the packet names an unknown one.
    func app(_ topic: Topic, _ properties: MQTTProperties) -> App? {
        if let entry = subscriptions.entry(topic) {
            return App(topic: topic, environment: entry.environment ?? environment)
        }
        return switch EnvironmentProperty(properties) {
        case .absent: App(topic: topic, environment: environment)
        case .named(let environment): App(topic: topic, environment: environment)
        case .unknown: nil
        }
    }

    /// A reason string, if the device takes one.
    func reason(_ text: String?) -> MQTTProperties {
        guard let text, !text.isEmpty, version == .v5, reportsProblems else { return [] }
        return [.reasonString(text)]
    }

    // MARK: - Packets

    mutating func received(_ packet: MQTTPacket, _ limits: CourierConfiguration) -> SessionOutput {
        switch packet {
        case .publish(let publish): return receivedPublish(publish, limits)
        case .subscribe(let packet): return enqueue(.subscribe(SubscribeOperation(packet, in: self, limits)))
        case .unsubscribe(let packet): return enqueue(.unsubscribe(UnsubscribeOperation(packet, limits)))
        case .pingreq: return enqueue(.ping)
        case .disconnect(let disconnect): return receivedDisconnect(disconnect, limits)
        case .puback:
            // The window takes it before it comes here.
            return SessionOutput()
        case .pubrel(let answer):
            let code: MQTTReasonCode = version == .v5 ? .packetIdentifierNotFound : .success
            let properties = reason("no PUBLISH at QoS 2 has this packet identifier")
            let identifier = answer.packetIdentifier
            return .send(
                .pubcomp(MQTTPublishAnswer(packetIdentifier: identifier, reasonCode: code, properties: properties))
            )
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

    private mutating func receivedPublish(_ publish: MQTTPublish, _ limits: CourierConfiguration) -> SessionOutput {
        // QoS 2, RETAIN and topic aliases are announced as not available (MQTT 5 §3.2.2.3.4, .5, .8).
        guard publish.qualityOfService != .exactlyOnce else { return .end(.qosNotSupported, "publish at QoS 0 or 1") }
        if version == .v5 {
            guard !publish.isRetained else { return .end(.retainNotSupported, "publish with RETAIN 0") }
            guard publish.properties.topicAlias == nil else {
                return .end(.topicAliasInvalid, "the topic alias maximum of CONNACK is 0")
            }
            // [MQTT-3.3.4-6]
            guard publish.properties.subscriptionIdentifier == nil else {
                return .end(.protocolError, "a PUBLISH to the service has no subscription identifier")
            }
            guard publish.packetIdentifier == nil || unacknowledgedCount < Int(limits.receiveMaximum) else {
                return .end(.receiveMaximumExceeded, "the receive maximum of CONNACK is \(limits.receiveMaximum)")
            }
        }
        guard let operation = PublishOperation(publish, self) else { return .foreignToken }
        return enqueue(.publish(operation))
    }

    /// Messages of the device whose PUBACK is not written yet.
    private var unacknowledgedCount: Int {
        waiting.count { $0.awaitsPuback } + (current?.awaitsPuback == true ? 1 : 0)
    }

    /// DISCONNECT may shorten or lengthen the session, but not make one ([MQTT-3.14.4-1] ff.).
    ///
    /// The will goes with it.
    private mutating func receivedDisconnect(
        _ disconnect: MQTTDisconnect,
        _ limits: CourierConfiguration
    ) -> SessionOutput {
        if let interval = disconnect.properties.sessionExpiryInterval {
            guard interval == 0 || connectExpiryInterval > 0 else {
                return .end(.protocolError, "the session expiry interval of CONNECT was 0")
            }
            expiryInterval = min(interval, UInt32(clamping: limits.longestSession.components.seconds))
        }
        return SessionOutput(end: .silently)
    }

    // MARK: - Operations

    private mutating func enqueue(_ operation: SessionOperation) -> SessionOutput {
        waiting.append(operation)
        var output = SessionOutput()
        proceed(&output)
        return output
    }

    /// Begins operations until one waits for the registry.
    private mutating func proceed(_ output: inout SessionOutput) {
        while current == nil, output.end == nil, !waiting.isEmpty {
            perform(waiting.removeFirst(), answer: nil, &output)
        }
        // Gives the array back: a session is idle nearly always.
        if waiting.isEmpty { waiting = [] }
    }

    /// Continues the current operation with the registry's answer.
    mutating func completed(_ answer: RegistryAnswer) -> SessionOutput {
        var output = SessionOutput()
        guard let operation = current.take() else { return output }
        perform(operation, answer: answer, &output)
        proceed(&output)
        return output
    }

    private mutating func perform(
        _ operation: SessionOperation,
        answer: RegistryAnswer?,
        _ output: inout SessionOutput
    ) {
        var operation = operation
        let step = operation.proceed(answer, &self)
        output.actions += step.actions
        output.end = step.end
        if let request = step.request {
            output.actions.append(.request(request))
            current = operation
        }
    }
}

/// The result of a packet, of one step of an operation, or of an answer of the registry.
struct SessionOutput {
    enum End {
        case silently
        case because(MQTTReasonCode, String, ConnectionFault?)
    }

    var actions: [ConnectionAction] = []
    /// Asked of the registry; its answer continues the operation.
    var request: RegistryRequest?
    var end: End?

    static func send(_ packet: MQTTPacket, then actions: [ConnectionAction] = []) -> SessionOutput {
        SessionOutput(actions: [.send(packet)] + actions)
    }

    static func request(_ request: RegistryRequest, after actions: [ConnectionAction] = []) -> SessionOutput {
        SessionOutput(actions: actions, request: request)
    }

    static func end(
        _ code: MQTTReasonCode,
        _ reason: String,
        fault: ConnectionFault? = .protocolError
    ) -> SessionOutput {
        SessionOutput(end: .because(code, reason, fault))
    }

    static let foreignToken = SessionOutput.end(
        .notAuthorized,
        "a presented token is not one that this service gave this device: 64 hexadecimal digits from apps/<topic>/token",
        fault: .foreignToken
    )
    /// The reason string where the registry or the store failed.
    static let failure = "the service could not do it now: try again"
}

/// A request of the device, and the step that it has reached.
///
/// Out of line: a session has one for a moment, and pays for none while idle.
indirect enum SessionOperation {
    case subscribe(SubscribeOperation)
    case unsubscribe(UnsubscribeOperation)
    case publish(PublishOperation)
    /// In its turn as well: a device that publishes at QoS 0 has no other sign that its message was handled.
    case ping

    var awaitsPuback: Bool {
        if case .publish(let operation) = self { operation.awaitsPuback } else { false }
    }

    /// Takes the next step: the first without an answer, each other with the registry's answer to the one before.
    mutating func proceed(_ answer: RegistryAnswer?, _ session: inout MQTTSession) -> SessionOutput {
        switch self {
        case .subscribe(var operation):
            defer { self = .subscribe(operation) }
            return operation.proceed(answer, &session)
        case .unsubscribe(var operation):
            defer { self = .unsubscribe(operation) }
            return operation.proceed(answer, &session)
        case .publish(var operation):
            defer { self = .publish(operation) }
            return operation.proceed(answer, &session)
        // [MQTT-3.12.4-1]
        case .ping: return .send(.pingresp)
        }
    }
}
