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
        /// Takes what the service announces, signed.
        case announcement(String)
        /// Remembers the notification that was just reported, so that it is not reported again.
        case remember(SeenNotifications.Key)
        /// The service has accepted the connection, with this keep-alive interval; zero for none.
        case live(keepAlive: Duration)
        /// The connection is over.
        case end(End)
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
        case channel(DeviceChannel, UInt64)
        case endChannel(UInt64)
        case settings(Topic, UInt64)
        case saving(UInt64)
        case token
        case announcements
        case announcement

        var isPublish: Bool {
            switch self {
            case .subscribe, .unsubscribe, .channel, .endChannel, .announcements: false
            case .settings, .saving, .token, .announcement: true
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
        case (.connecting, .connack(let connack)): received(connack, &memory)
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
        if disconnect.reasonCode == .notAuthorized { memory.forgetTokens() }
        return end(DeviceSession.end(for: disconnect))
    }

    /// Handles bytes that are not MQTT.
    mutating func received(_ error: MQTTError) -> [Effect] {
        let words =
            state == .connecting
            ? "the server does not speak MQTT: check that device-port is its port for devices" : error.message
        return end(violation(words), saying: error.code)
    }

    private mutating func received(_ connack: MQTTConnack, _ memory: inout DeviceMemory) -> [Effect] {
        guard !connack.reasonCode.isFailure else {
            var ending = DeviceSession.end(for: connack.reasonCode, connack.properties.reasonString)
            ending.reference = connack.properties.serverReference
            return end(ending)
        }
        state = .live
        memory.forgetEndedChannels()
        let keepAlive =
            connack.properties.serverKeepAlive.map { Duration.seconds(Int64($0)) } ?? configuration.keepAlive
        receiveMaximum = Int(connack.properties.receiveMaximum ?? .max)
        return [.live(keepAlive: keepAlive), .report(.connected)] + askForAnnouncements(memory) + sendRequests(memory)
    }

    // MARK: - Announcements

    /// Asks for what the service announces, and says what the device has.
    private mutating func askForAnnouncements(_ memory: DeviceMemory) -> [Effect] {
        guard let version = memory.announcement, let identifier = identifier(for: .announcements, nil) else {
            return []
        }
        let properties: MQTTProperties = [.userProperty(name: "version", value: "\(version)")]
        return [.send(.subscribe(to: CourierFilter.service.name, identifier, properties))]
    }

    /// Says which announcement the device has taken.
    mutating func confirmAnnouncement(_ memory: DeviceMemory) -> [Effect] {
        guard let version = memory.announcement, let identifier = identifier(for: .announcement, nil) else { return [] }
        return [.send(.message(.service, #"{"version":\#(version)}"#, identifier))]
    }

    // MARK: - Requests

    /// Sends the requests that were not sent on this connection yet.
    mutating func sendRequests(_ memory: DeviceMemory) -> [Effect] {
        guard state == .live else { return [] }
        var effects: [Effect] = []
        for request in memory.removals where !sent.contains(request.number) {
            guard let identifier = identifier(for: .unsubscribe(request.number), request.number) else { break }
            effects.append(.send(.remove(request.value, identifier)))
        }
        // Removals come first: an app that is installed again is a new registration.
        for request in memory.apps where !sent.contains(request.number) && !memory.isBeingRemoved(request.value.topic) {
            guard let identifier = identifier(for: .subscribe(request.value.topic, request.number), request.number)
            else { break }
            let token = memory.tokens[request.value.topic]
            presented[request.value.topic] = token
            effects.append(.send(.register(request.value, token, identifier)))
        }
        for request in memory.endedChannels where !sent.contains(request.number) {
            guard let identifier = identifier(for: .endChannel(request.number), request.number) else { break }
            effects.append(.send(.unsubscribe(from: request.value.filter, identifier)))
        }
        for request in memory.channels where !sent.contains(request.number) {
            let pending = PendingRequest.channel(request.value, request.number)
            guard let identifier = identifier(for: pending, request.number) else { break }
            effects.append(.send(.subscribe(to: request.value.filter, identifier)))
        }
        let settings = memory.settings.filter { !sent.contains($0.value.number) && !memory.isBeingRemoved($0.key) }
        for (topic, request) in settings.sorted(by: { $0.value.number < $1.value.number }) {
            guard let identifier = identifier(for: .settings(topic, request.number), request.number) else { break }
            effects.append(.send(.message(.settings(topic), #"{"enabled":\#(request.value)}"#, identifier)))
        }
        if let request = memory.saving, !sent.contains(request.number),
            let identifier = identifier(for: .saving(request.number), request.number)
        {
            effects.append(.send(.message(.power, #"{"saving":\#(request.value)}"#, identifier)))
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
            effects.append(.send(.message(.token(topic), token.hex, identifier)))
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

    // MARK: - Answers

    private mutating func subscribed(_ suback: MQTTSubscriptionAnswer, _ memory: DeviceMemory) -> [Effect] {
        guard let request = pendingRequests.removeValue(forKey: suback.packetIdentifier),
            let code = suback.reasonCodes.first
        else { return endUnexpectedAnswer() }
        let reason = DeviceSession.text(code, suback.properties.reasonString)
        // An app or channel that was removed or made again meanwhile has a later request.
        switch request {
        case .subscribe(let app, let number):
            guard code.isFailure, memory.apps.contains(where: { $0.number == number }) else { break }
            failed.insert(number)
            return [.report(.appRefused(app, reason: reason))] + sendRequests(memory)
        case .channel(let channel, let number):
            guard memory.channels.contains(where: { $0.number == number }) else { break }
            guard code.isFailure else { return [.report(.subscribed(channel))] + sendRequests(memory) }
            failed.insert(number)
            // The service knows channels of one environment, and says of all others that they are not there.
            let hint =
                code == .notAuthorized ? "; it was deleted, or is of another app or of the other environment" : ""
            return [.report(.channelRefused(channel, reason: reason + hint))] + sendRequests(memory)
        // A service that announces nothing refuses.
        case .announcements: break
        default: return endUnexpectedAnswer()
        }
        return sendRequests(memory)
    }

    private mutating func unsubscribed(_ unsuback: MQTTSubscriptionAnswer, _ memory: inout DeviceMemory) -> [Effect] {
        guard let request = pendingRequests.removeValue(forKey: unsuback.packetIdentifier),
            let code = unsuback.reasonCodes.first
        else { return endUnexpectedAnswer() }
        switch request {
        case .unsubscribe(let number), .endChannel(let number):
            // "No subscription existed" is a success: there was nothing to remove.
            guard !code.isFailure else {
                failed.insert(number)
                return []
            }
            memory.confirmEndedChannel(number)
            let removed = memory.confirmRemoval(number).map { [Effect.report(.removed($0))] } ?? []
            return removed + sendRequests(memory)
        default: return endUnexpectedAnswer()
        }
    }

    private mutating func received(_ puback: MQTTPublishAnswer, _ memory: inout DeviceMemory) -> [Effect] {
        let request = pendingRequests.removeValue(forKey: puback.packetIdentifier)
        var effects: [Effect] = []
        switch request {
        case .settings(_, let number) where puback.reasonCode.isFailure,
            .saving(let number) where puback.reasonCode.isFailure:
            failed.insert(number)
        case .settings(let topic, let number):
            if let isEnabled = memory.confirmSettings(topic, number) {
                effects.append(.report(.settingsTaken(topic, isEnabled: isEnabled)))
            }
        case .saving(let number):
            memory.confirmSaving(number)
        case .token, .announcement:
            break
        case .subscribe, .unsubscribe, .channel, .endChannel, .announcements, nil:
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
        case .channel(let topic, let id):
            guard let channel = DeviceChannel(id, of: topic), memory.isSubscribed(to: channel) else { break }
            effects = report(ReceivedNotification(publish, topic: topic, channel: channel.id), memory)
        case .token(let topic):
            guard let token = DeviceToken(hex: publish.payload) else {
                return end(violation("the service sent a malformed device token"), saying: .payloadFormatInvalid)
            }
            // A token that arrives during the removal belongs to the old registration.
            guard memory.isInstalled(topic), !memory.isBeingRemoved(topic) else { break }
            memory.hold(token, for: topic)
            effects.append(.report(.token(token, for: topic)))
        case .service:
            effects.append(.announcement(String(decoding: publish.payload, as: UTF8.self)))
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
        let disconnect = MQTTDisconnect(reasonCode: code, properties: [.reasonString(end.reason)])
        return [.send(.disconnect(disconnect)), .end(end)]
    }

    private func violation(_ reason: String) -> End {
        End(advice: .retryLater, reason: reason)
    }
}

extension ReceivedNotification {
    /// Reads a PUBLISH of the device contract; missing and unknown properties are nil.
    init(_ publish: MQTTPublish, topic: Topic, channel: String? = nil) {
        func property(_ name: String) -> String? { publish.properties.userProperties(named: name).first }
        self.topic = topic
        self.channel = channel
        payload = publish.payload
        id = property(channel == nil ? "apns-id" : "apns-unique-id").flatMap { NotificationID($0) }
        pushType = property("apns-push-type").flatMap { PushType(rawValue: $0) }
        priority = property("apns-priority").flatMap { UInt8($0) }.flatMap { Priority(rawValue: $0) }
        collapseID = property("apns-collapse-id")
        expiresIn = publish.properties.messageExpiryInterval.map { .seconds(Int64($0)) }
        isRepeated = publish.isDuplicate
    }
}
