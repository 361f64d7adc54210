import HeraldModel
import HeraldWire

/// One MQTT 5 connection of a device, decided: connecting → subscribing → live.
///
/// Knows no clock and no socket. Packets go in, orders come out, to be carried out one after the other.
struct DeviceSession {
    /// What is to be done.
    enum Order: Hashable, Sendable {
        case send(MQTTPacket)
        case report(DeviceEvent)
        /// What was reported before it is not to be reported again.
        case remember(SeenNotifications.Key)
        /// The service let the device in, and wants a sign of life at least this often; zero for never.
        case live(keepAlive: Duration)
        /// The connection is over.
        case end(End)
    }

    /// How a connection ends.
    struct End: Error, Hashable, Sendable {
        enum Advice: Hashable {
            /// Connect again.
            case retry
            /// Connect again, but not soon.
            case retryLater
            /// It would end in the same way.
            case giveUp
        }

        let advice: Advice
        let reason: String
    }

    private enum State {
        case connecting
        case live
        case ended
    }

    /// What was said and is not answered yet, with the number of the wish.
    private enum Question {
        case subscribe(Topic, UInt64)
        case unsubscribe(UInt64)
        case settings(Topic, UInt64)
        case saving(UInt64)

        var isPublish: Bool {
            switch self {
            case .subscribe, .unsubscribe: false
            case .settings, .saving: true
            }
        }
    }

    /// Unanswered packets at once; an identifier is one of 65,535.
    private static let mostQuestions = 10_000

    private let configuration: DeviceConfiguration
    private var state = State.connecting
    private var questions: [UInt16: Question] = [:]
    private var lastIdentifier: UInt16 = 0
    /// The wishes that were said on this connection.
    private var said: Set<UInt64> = []
    /// Those of them that the service could not do.
    private var failed: Set<UInt64> = []
    /// How many of our messages the service takes before it has acknowledged the first.
    private var receiveMaximum = Int(UInt16.max)
    /// What came on this connection: nothing is sent twice on one, so that what is the same is another notification.
    private var fresh = SeenNotifications()

    init(_ configuration: DeviceConfiguration) {
        self.configuration = configuration
    }

    /// The first packet.
    ///
    /// A clean start: registrations and what waits are the service's own and outlive sessions, and so no subscription of
    /// an app that is no longer asked for comes back.
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

    mutating func received(_ packet: MQTTPacket, _ memory: inout DeviceMemory) -> [Order] {
        switch (state, packet) {
        case (.ended, _): []
        case (.connecting, .connack(let connack)): received(connack, memory)
        case (.live, .suback(let suback)): received(suback, memory)
        case (.live, .unsuback(let unsuback)): received(unsuback, &memory)
        case (.live, .puback(let puback)): received(puback, &memory)
        case (.live, .publish(let publish)): received(publish, &memory)
        case (.live, .pingresp): []
        case (_, .disconnect(let disconnect)): received(disconnect, &memory)
        default: end(violation("the service sent a packet out of its turn"), saying: .protocolError)
        }
    }

    /// The service disconnects who presents a token that is not its own, such as one under a key that was retired while
    /// the device was away: without tokens the device gets others.
    ///
    /// One that is not let in for another reason is told so then.
    private mutating func received(_ disconnect: MQTTDisconnect, _ memory: inout DeviceMemory) -> [Order] {
        let ending = DeviceSession.end(for: disconnect)
        guard disconnect.reasonCode == .notAuthorized, !memory.tokens.isEmpty else {
            guard ending.advice == .giveUp else { return end(ending) }
            return end(End(advice: .giveUp, reason: "\(ending.reason); \(DeviceClient.remedy)"))
        }
        memory.forgetTokens()
        return end(End(advice: .retry, reason: ending.reason))
    }

    /// The bytes are no MQTT.
    mutating func received(_ error: MQTTError) -> [Order] {
        end(violation(error.message), saying: error.code)
    }

    private mutating func received(_ connack: MQTTConnack, _ memory: DeviceMemory) -> [Order] {
        guard !connack.reasonCode.isFailure else {
            return end(DeviceSession.end(for: connack.reasonCode, connack.properties.reasonString))
        }
        state = .live
        let keepAlive =
            connack.properties.serverKeepAlive.map { Duration.seconds(Int64($0)) } ?? configuration.keepAlive
        receiveMaximum = Int(connack.properties.receiveMaximum ?? .max)
        return [.live(keepAlive: keepAlive), .report(.connected)] + tell(memory)
    }

    // What the device wishes.

    /// Says what is wished and was not said on this connection.
    mutating func tell(_ memory: DeviceMemory) -> [Order] {
        guard state == .live else { return [] }
        var orders: [Order] = []
        for wish in memory.removals where !said.contains(wish.number) {
            guard let identifier = ask(.unsubscribe(wish.number), wish.number) else { break }
            orders.append(.send(unsubscribe(wish.value, identifier)))
        }
        // A removal comes first: what is installed anew is another registration.
        for wish in memory.apps where !said.contains(wish.number) && !memory.isBeingRemoved(wish.value.topic) {
            guard let identifier = ask(.subscribe(wish.value.topic, wish.number), wish.number) else { break }
            orders.append(.send(subscribe(wish.value, memory.tokens[wish.value.topic], identifier)))
        }
        let settings = memory.settings.filter { !said.contains($0.value.number) && !memory.isBeingRemoved($0.key) }
        for (topic, wish) in settings.sorted(by: { $0.value.number < $1.value.number }) {
            guard let identifier = ask(.settings(topic, wish.number), wish.number) else { break }
            orders.append(.send(message(CourierTopic.settings(topic), #"{"enabled":\#(wish.value)}"#, identifier)))
        }
        if let wish = memory.saving, !said.contains(wish.number),
            let identifier = ask(.saving(wish.number), wish.number)
        {
            orders.append(.send(message(CourierTopic.power, #"{"saving":\#(wish.value)}"#, identifier)))
        }
        return orders
    }

    /// Says once more what the service could not do: called now and then.
    mutating func tellAgain(_ memory: DeviceMemory) -> [Order] {
        said.subtract(failed)
        failed = []
        return tell(memory)
    }

    /// The packet identifier for a question; nil if it has to wait for the answers to others.
    private mutating func ask(_ question: Question, _ number: UInt64) -> UInt16? {
        guard questions.count < DeviceSession.mostQuestions else { return nil }
        guard !question.isPublish || questions.values.count(where: \.isPublish) < receiveMaximum else { return nil }
        repeat {
            lastIdentifier = lastIdentifier == .max ? 1 : lastIdentifier + 1
        } while questions[lastIdentifier] != nil
        questions[lastIdentifier] = question
        said.insert(number)
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

    private func message(_ topic: CourierTopic, _ json: String, _ identifier: UInt16) -> MQTTPacket {
        .publish(
            MQTTPublish(
                topic: topic.name,
                packetIdentifier: identifier,
                qualityOfService: .atLeastOnce,
                payload: Array(json.utf8)
            )
        )
    }

    // What the service answers.

    private mutating func received(_ suback: MQTTSuback, _ memory: DeviceMemory) -> [Order] {
        guard case .subscribe(let app, let number)? = questions.removeValue(forKey: suback.packetIdentifier),
            let code = suback.reasonCodes.first
        else { return endUnasked() }
        // What was removed or installed anew meanwhile is answered for itself.
        guard code.isFailure, memory.apps.contains(where: { $0.number == number }) else { return tell(memory) }
        failed.insert(number)
        let reason = DeviceSession.words(code, suback.properties.reasonString)
        return [.report(.appRefused(app, reason: reason))] + tell(memory)
    }

    private mutating func received(_ unsuback: MQTTUnsuback, _ memory: inout DeviceMemory) -> [Order] {
        guard case .unsubscribe(let number)? = questions.removeValue(forKey: unsuback.packetIdentifier),
            let code = unsuback.reasonCodes.first
        else { return endUnasked() }
        // No subscription existed: there is nothing to remove, and so it is removed.
        guard !code.isFailure else {
            failed.insert(number)
            return []
        }
        let removed = memory.confirmRemoval(number).map { [Order.report(.removed($0))] } ?? []
        return removed + tell(memory)
    }

    private mutating func received(_ puback: MQTTPublishAnswer, _ memory: inout DeviceMemory) -> [Order] {
        let question = questions.removeValue(forKey: puback.packetIdentifier)
        var orders: [Order] = []
        switch question {
        case .settings(_, let number) where puback.reasonCode.isFailure,
            .saving(let number) where puback.reasonCode.isFailure:
            failed.insert(number)
        case .settings(let topic, let number):
            if memory.confirmSettings(topic, number) { orders.append(.report(.settingsTaken(topic))) }
        case .saving(let number):
            memory.confirmSaving(number)
        case .subscribe, .unsubscribe, nil:
            return endUnasked()
        }
        return orders + tell(memory)
    }

    private mutating func endUnasked() -> [Order] {
        end(violation("the service acknowledged what was not asked"), saying: .protocolError)
    }

    /// The acknowledgement comes after the report: a notification that nobody has seen is not delivered.
    private mutating func received(_ publish: MQTTPublish, _ memory: inout DeviceMemory) -> [Order] {
        var orders: [Order] = []
        switch CourierTopic(publish.topic) {
        case .notifications(let topic):
            // Of an app that is being removed nothing is shown.
            guard !memory.isBeingRemoved(topic) else { break }
            orders = report(ReceivedNotification(publish, topic: topic), memory)
        case .token(let topic):
            guard let token = DeviceToken(hex: publish.payload) else {
                return end(violation("the service sent a device token that is none"), saying: .payloadFormatInvalid)
            }
            // One that comes while the app is being removed is that of the registration which goes.
            guard memory.isInstalled(topic), !memory.isBeingRemoved(topic) else { break }
            memory.hold(token, for: topic)
            orders.append(.report(.token(token, for: topic)))
        default:
            // Nothing else was subscribed to; a later service may know more.
            break
        }
        if let identifier = publish.packetIdentifier {
            guard publish.qualityOfService == .atLeastOnce else {
                return end(violation("the service sent at a QoS that was not asked"), saying: .qosNotSupported)
            }
            orders.append(.send(.puback(MQTTPublishAnswer(packetIdentifier: identifier))))
        }
        return orders
    }

    /// A notification that came on an earlier connection comes again because its acknowledgement was lost.
    private mutating func report(_ notification: ReceivedNotification, _ memory: DeviceMemory) -> [Order] {
        guard let key = SeenNotifications.Key(notification) else { return [.report(.notification(notification))] }
        let isRepeated = memory.seen.contains(key) && !fresh.contains(key)
        fresh.insert(key)
        guard !isRepeated else { return [] }
        return [.report(.notification(notification)), .remember(key)]
    }

    private mutating func end(_ end: End, saying code: MQTTReasonCode? = nil) -> [Order] {
        // A DISCONNECT before CONNACK would be out of turn for a client too.
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
            default: .giveUp
            }
        let remedy = code == .notAuthorized || code == .banned ? "; \(DeviceClient.remedy)" : ""
        return End(advice: advice, reason: "the service refused the connection: \(words(code, reason))\(remedy)")
    }

    private static func end(for disconnect: MQTTDisconnect) -> End {
        let words = words(disconnect.reasonCode, disconnect.properties.reasonString)
        let advice: End.Advice =
            switch disconnect.reasonCode {
            case .sessionTakenOver, .quotaExceeded, .messageRateTooHigh, .connectionRateExceeded, .serverBusy:
                .retryLater
            case .notAuthorized, .administrativeAction, .banned: .giveUp
            default: .retry
            }
        return End(advice: advice, reason: "the service ended the connection: \(words)")
    }

    /// The code in words, with the service's own.
    private static func words(_ code: MQTTReasonCode, _ reason: String?) -> String {
        reason.map { "\(code.words) (\($0))" } ?? code.words
    }
}

extension ReceivedNotification {
    /// Reads what the device contract puts around a payload; what is missing or unknown is nil.
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
