import HeraldModel
import HeraldWire

/// Decides what happens on one MQTT 5 connection of a device: connecting, then live.
///
/// Knows no clock and no socket. Packets go in, effects come out; a driver performs them in order.
struct DeviceSession {
    /// An effect for the driver to perform.
    enum Effect: Hashable, Sendable {
        case send(MQTTPacket)
        case report(DeviceEvent)
        /// Remembers the notification that was just reported, so that it is not reported again.
        case remember(SeenNotifications.Key)
        /// The service has accepted the connection, with this keep-alive interval; zero for none.
        case live(keepAlive: Duration)
        /// The connection is over.
        case end(End)
    }

    /// The end of a connection.
    struct End: Error, Hashable, Sendable {
        enum Advice: Hashable {
            /// Reconnect.
            case retry
            /// Reconnect after the longest pause.
            case retryLater
            /// Reconnect after a pause that grows each time.
            case takenOver
            /// Do not reconnect: it would end in the same way, until something changes at the service.
            case giveUp
            /// Do not reconnect with this certificate: the service never accepts it again.
            case dismissed
        }

        let advice: Advice
        let reason: String

        /// The end of a connection whose certificate was replaced meanwhile: a refusal may concern only that certificate.
        var withNextCredential: End {
            guard advice == .giveUp || advice == .dismissed else { return self }
            let reason = "the service refused the certificate of this connection; the renewed one is used next"
            return End(advice: .retry, reason: reason)
        }
    }

    private enum State {
        case connecting
        case live
        case ended
    }

    /// An unanswered packet, with the number of its request.
    private enum PendingRequest {
        case subscribe(Topic, UInt64)
        case unsubscribe(UInt64)
        case settings(Topic, UInt64)
        case saving(UInt64)
        case token

        var isPublish: Bool {
            switch self {
            case .subscribe, .unsubscribe: false
            case .settings, .saving, .token: true
            }
        }
    }

    /// The most unanswered packets; there are 65,535 packet identifiers.
    private static let maximumPendingRequests = 10_000

    private let configuration: DeviceConfiguration
    private var state = State.connecting
    private var pendingRequests: [UInt16: PendingRequest] = [:]
    private var lastIdentifier: UInt16 = 0
    /// The requests that were sent on this connection.
    private var sent: Set<UInt64> = []
    /// The device tokens that were presented on this connection.
    private var presented: [Topic: DeviceToken] = [:]
    /// The requests that the service refused on this connection.
    private var failed: Set<UInt64> = []
    /// The most unacknowledged messages that the service accepts from this side.
    private var receiveMaximum = Int(UInt16.max)
    /// The notifications of this connection.
    ///
    /// None is sent twice on one connection: an equal one is another notification.
    private var receivedHere = SeenNotifications()

    init(_ configuration: DeviceConfiguration) {
        self.configuration = configuration
    }

    /// The first packet.
    ///
    /// It demands a clean start: the service keeps registrations and waiting notifications independently of sessions, and no
    /// subscription of a removed app comes back.
    var connect: MQTTPacket {
        .connect(
            MQTTConnect(
                version: .v5,
                clientIdentifier: configuration.credential.id.name,
                isClean: true,
                keepAlive: UInt16(clamping: configuration.keepAlive.components.seconds),
                properties: [
                    .receiveMaximum(max(1, configuration.receiveMaximum)),
                    .maximumPacketSize(UInt32(clamping: max(1, configuration.maximumPacketBytes))),
                ]
            )
        )
    }

    mutating func received(_ packet: MQTTPacket, _ memory: inout DeviceMemory) -> [Effect] {
        switch (state, packet) {
        case (.ended, _): []
        case (.connecting, .connack(let connack)): received(connack, memory)
        case (.live, .suback(let suback)): subscribed(suback, memory)
        case (.live, .unsuback(let unsuback)): unsubscribed(unsuback, &memory)
        case (.live, .puback(let puback)): received(puback, &memory)
        case (.live, .publish(let publish)): received(publish, &memory)
        case (.live, .pingresp): []
        case (_, .disconnect(let disconnect)): received(disconnect, &memory)
        default: end(violation("the service sent a packet out of sequence"), saying: .protocolError)
        }
    }

    /// The service disconnects a device that presents a token which it does not accept, such as one under a key that
    /// was retired meanwhile: without tokens, the device gets new ones.
    private mutating func received(_ disconnect: MQTTDisconnect, _ memory: inout DeviceMemory) -> [Effect] {
        let ending = DeviceSession.end(for: disconnect)
        guard disconnect.reasonCode == .notAuthorized, !memory.tokens.isEmpty else {
            guard ending.advice == .giveUp else { return end(ending) }
            return end(End(advice: .giveUp, reason: "\(ending.reason); \(DeviceConnector.remedy)"))
        }
        memory.forgetTokens()
        return end(End(advice: .retry, reason: ending.reason))
    }

    /// Handles bytes that are not MQTT.
    mutating func received(_ error: MQTTError) -> [Effect] {
        end(violation(error.message), saying: error.code)
    }

    private mutating func received(_ connack: MQTTConnack, _ memory: DeviceMemory) -> [Effect] {
        guard !connack.reasonCode.isFailure else {
            return end(DeviceSession.end(for: connack.reasonCode, connack.properties.reasonString))
        }
        state = .live
        let keepAlive =
            connack.properties.serverKeepAlive.map { Duration.seconds(Int64($0)) } ?? configuration.keepAlive
        receiveMaximum = Int(connack.properties.receiveMaximum ?? .max)
        return [.live(keepAlive: keepAlive), .report(.connected)] + sendRequests(memory)
    }

    // MARK: - Requests

    /// Sends the requests that were not sent on this connection yet.
    mutating func sendRequests(_ memory: DeviceMemory) -> [Effect] {
        guard state == .live else { return [] }
        var effects: [Effect] = []
        for request in memory.removals where !sent.contains(request.number) {
            guard let identifier = identifier(for: .unsubscribe(request.number), request.number) else { break }
            effects.append(.send(unsubscribe(request.value, identifier)))
        }
        // Removals come first: an app that is installed again is a new registration.
        for request in memory.apps where !sent.contains(request.number) && !memory.isBeingRemoved(request.value.topic) {
            guard let identifier = identifier(for: .subscribe(request.value.topic, request.number), request.number)
            else { break }
            let token = memory.tokens[request.value.topic]
            presented[request.value.topic] = token
            effects.append(.send(subscribe(request.value, token, identifier)))
        }
        let settings = memory.settings.filter { !sent.contains($0.value.number) && !memory.isBeingRemoved($0.key) }
        for (topic, request) in settings.sorted(by: { $0.value.number < $1.value.number }) {
            guard let identifier = identifier(for: .settings(topic, request.number), request.number) else { break }
            effects.append(.send(message(CourierTopic.settings(topic), #"{"enabled":\#(request.value)}"#, identifier)))
        }
        if let request = memory.saving, !sent.contains(request.number),
            let identifier = identifier(for: .saving(request.number), request.number)
        {
            effects.append(.send(message(CourierTopic.power, #"{"saving":\#(request.value)}"#, identifier)))
        }
        return effects + presentTokens(memory)
    }

    /// Presents the tokens that the service has given on this connection; SUBSCRIBE has presented the others.
    private mutating func presentTokens(_ memory: DeviceMemory) -> [Effect] {
        var effects: [Effect] = []
        let tokens = memory.tokens.filter { presented[$0.key] != $0.value && !memory.isBeingRemoved($0.key) }
        for (topic, token) in tokens.sorted(by: { $0.key.name < $1.key.name }) {
            guard let identifier = identifier(for: .token, nil) else { break }
            presented[topic] = token
            effects.append(.send(message(CourierTopic.token(topic), token.hex, identifier)))
        }
        return effects
    }

    /// Repeats the requests that the service refused; called from time to time.
    mutating func retryFailedRequests(_ memory: DeviceMemory) -> [Effect] {
        sent.subtract(failed)
        failed = []
        return sendRequests(memory)
    }

    /// Reserves a packet identifier for a request; nil while too many are unanswered.
    private mutating func identifier(for request: PendingRequest, _ number: UInt64?) -> UInt16? {
        guard pendingRequests.count < DeviceSession.maximumPendingRequests else { return nil }
        guard !request.isPublish || pendingRequests.values.count(where: \.isPublish) < receiveMaximum else {
            return nil
        }
        repeat {
            lastIdentifier = lastIdentifier == .max ? 1 : lastIdentifier + 1
        } while pendingRequests[lastIdentifier] != nil
        pendingRequests[lastIdentifier] = request
        if let number { sent.insert(number) }
        return lastIdentifier
    }

    private func subscribe(_ app: DeviceApp, _ token: DeviceToken?, _ identifier: UInt16) -> MQTTPacket {
        var properties = DeviceSession.properties(of: app)
        if let token { properties.append(.userProperty(name: "token", value: token.hex)) }
        return .subscribe(
            MQTTSubscribe(
                packetIdentifier: identifier,
                properties: properties,
                subscriptions: [MQTTSubscription(filter: CourierFilter.everything(app.topic).name)]
            )
        )
    }

    private func unsubscribe(_ app: DeviceApp, _ identifier: UInt16) -> MQTTPacket {
        .unsubscribe(
            MQTTUnsubscribe(
                packetIdentifier: identifier,
                properties: DeviceSession.properties(of: app),
                filters: [CourierFilter.everything(app.topic).name]
            )
        )
    }

    private static func properties(of app: DeviceApp) -> MQTTProperties {
        guard let environment = app.environment else { return [] }
        return [.userProperty(name: "environment", value: environment.rawValue)]
    }

    private func message(_ topic: CourierTopic, _ text: String, _ identifier: UInt16) -> MQTTPacket {
        .publish(
            MQTTPublish(
                topic: topic.name,
                packetIdentifier: identifier,
                qualityOfService: .atLeastOnce,
                payload: Array(text.utf8)
            )
        )
    }

    // MARK: - Answers

    private mutating func subscribed(_ suback: MQTTSubscriptionAnswer, _ memory: DeviceMemory) -> [Effect] {
        guard case .subscribe(let app, let number)? = pendingRequests.removeValue(forKey: suback.packetIdentifier),
            let code = suback.reasonCodes.first
        else { return endUnexpectedAnswer() }
        // An app that was removed or installed again meanwhile has a later request.
        guard code.isFailure, memory.apps.contains(where: { $0.number == number }) else { return sendRequests(memory) }
        failed.insert(number)
        let reason = DeviceSession.text(code, suback.properties.reasonString)
        return [.report(.appRefused(app, reason: reason))] + sendRequests(memory)
    }

    private mutating func unsubscribed(_ unsuback: MQTTSubscriptionAnswer, _ memory: inout DeviceMemory) -> [Effect] {
        guard case .unsubscribe(let number)? = pendingRequests.removeValue(forKey: unsuback.packetIdentifier),
            let code = unsuback.reasonCodes.first
        else { return endUnexpectedAnswer() }
        // "No subscription existed" is a success: there was nothing to remove.
        guard !code.isFailure else {
            failed.insert(number)
            return []
        }
        let removed = memory.confirmRemoval(number).map { [Effect.report(.removed($0))] } ?? []
        return removed + sendRequests(memory)
    }

    private mutating func received(_ puback: MQTTPublishAnswer, _ memory: inout DeviceMemory) -> [Effect] {
        let request = pendingRequests.removeValue(forKey: puback.packetIdentifier)
        var effects: [Effect] = []
        switch request {
        case .settings(_, let number) where puback.reasonCode.isFailure,
            .saving(let number) where puback.reasonCode.isFailure:
            failed.insert(number)
        case .settings(let topic, let number):
            if memory.confirmSettings(topic, number) { effects.append(.report(.settingsTaken(topic))) }
        case .saving(let number):
            memory.confirmSaving(number)
        case .token:
            break
        case .subscribe, .unsubscribe, nil:
            return endUnexpectedAnswer()
        }
        return effects + sendRequests(memory)
    }

    private mutating func endUnexpectedAnswer() -> [Effect] {
        end(violation("the service acknowledged a packet that was not sent"), saying: .protocolError)
    }

    /// Handles PUBLISH.
    ///
    /// The acknowledgement follows the report: a notification counts as delivered only once it was handled.
    private mutating func received(_ publish: MQTTPublish, _ memory: inout DeviceMemory) -> [Effect] {
        var effects: [Effect] = []
        switch CourierTopic(publish.topic) {
        case .notifications(let topic):
            // Notifications of an app that is being removed are not shown.
            guard !memory.isBeingRemoved(topic) else { break }
            effects = report(ReceivedNotification(publish, topic: topic), memory)
        case .token(let topic):
            guard let token = DeviceToken(hex: publish.payload) else {
                return end(violation("the service sent a malformed device token"), saying: .payloadFormatInvalid)
            }
            // A token that arrives during the removal belongs to the old registration.
            guard memory.isInstalled(topic), !memory.isBeingRemoved(topic) else { break }
            memory.hold(token, for: topic)
            effects.append(.report(.token(token, for: topic)))
        default:
            // Nothing else was subscribed to. A later version of the service may send more.
            break
        }
        if let identifier = publish.packetIdentifier {
            guard publish.qualityOfService == .atLeastOnce else {
                return end(violation("the service used a QoS that was not requested"), saying: .qosNotSupported)
            }
            effects.append(.send(.puback(MQTTPublishAnswer(packetIdentifier: identifier))))
        }
        if case .token = CourierTopic(publish.topic) { effects += presentTokens(memory) }
        return effects
    }

    /// Reports a notification, unless it is a duplicate from an earlier connection whose acknowledgement was lost.
    private mutating func report(_ notification: ReceivedNotification, _ memory: DeviceMemory) -> [Effect] {
        guard let key = SeenNotifications.Key(notification) else { return [.report(.notification(notification))] }
        let isRepeated = memory.seen.contains(key) && !receivedHere.contains(key)
        receivedHere.insert(key)
        guard !isRepeated else { return [] }
        return [.report(.notification(notification)), .remember(key)]
    }

    private mutating func end(_ end: End, saying code: MQTTReasonCode? = nil) -> [Effect] {
        // A client may not send DISCONNECT before CONNACK.
        let canSay = state == .live
        state = .ended
        guard let code, canSay else { return [.end(end)] }
        return [.send(.disconnect(MQTTDisconnect(reasonCode: code))), .end(end)]
    }

    private func violation(_ reason: String) -> End {
        End(advice: .retryLater, reason: reason)
    }

    private static func end(for code: MQTTReasonCode, _ reason: String?) -> End {
        let advice: End.Advice =
            switch code {
            case .serverUnavailable, .unspecifiedError, .useAnotherServer, .serverMoved: .retry
            case .serverBusy, .quotaExceeded, .connectionRateExceeded: .retryLater
            case .notAuthorized, .banned: .dismissed
            default: .giveUp
            }
        let remedy = advice == .dismissed ? "; \(DeviceConnector.remedy)" : ""
        return End(advice: advice, reason: "the service refused the connection: \(text(code, reason))\(remedy)")
    }

    private static func end(for disconnect: MQTTDisconnect) -> End {
        let words = text(disconnect.reasonCode, disconnect.properties.reasonString)
        let advice: End.Advice =
            switch disconnect.reasonCode {
            case .sessionTakenOver: .takenOver
            case .quotaExceeded, .messageRateTooHigh, .connectionRateExceeded, .serverBusy: .retryLater
            case .notAuthorized, .banned: .giveUp
            default: .retry  // Also after 0x98: if the certificate is revoked, the next CONNACK says so.
            }
        return End(advice: advice, reason: "the service ended the connection: \(words)")
    }

    /// The reason code in words, with the service's reason string.
    private static func text(_ code: MQTTReasonCode, _ reason: String?) -> String {
        reason.map { "\(code.words) (\($0))" } ?? code.words
    }
}

extension ReceivedNotification {
    /// Reads a PUBLISH of the device contract; missing and unknown properties are nil.
    init(_ publish: MQTTPublish, topic: Topic) {
        func property(_ name: String) -> String? { publish.properties.userProperties(named: name).first }
        self.topic = topic
        payload = publish.payload
        id = property("apns-id").flatMap { NotificationID($0) }
        pushType = property("apns-push-type").flatMap { PushType(rawValue: $0) }
        priority = property("apns-priority").flatMap { UInt8($0) }.flatMap { Priority(rawValue: $0) }
        collapseID = property("apns-collapse-id")
        expiresIn = publish.properties.messageExpiryInterval.map { .seconds(Int64($0)) }
        isRepeated = publish.isDuplicate
    }
}
