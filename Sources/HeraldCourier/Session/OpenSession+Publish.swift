import HeraldMailbox
import HeraldModel
import HeraldWire

// What devices publish: their settings, their power, the token that they hold.
extension OpenSession {
    mutating func receivedPublish(_ publish: MQTTPublish, _ limits: CourierConfiguration) -> Reaction {
        // QoS 2, RETAIN and topic aliases are announced as not available (MQTT 5 §3.2.2.3.4, .5, .8).
        guard publish.qualityOfService != .exactlyOnce else { return .end(.qosNotSupported) }
        if version == .v5 {
            guard !publish.isRetained else { return .end(.retainNotSupported) }
            guard publish.properties.topicAlias == nil else { return .end(.topicAliasInvalid) }
            // [MQTT-3.3.4-6]
            guard publish.properties.subscriptionIdentifier == nil else { return .end(.protocolError) }
            guard publish.packetIdentifier == nil || unacknowledged < Int(limits.receiveMaximum) else {
                return .end(.receiveMaximumExceeded)
            }
        }
        guard let operation = operation(publish) else { return .end(.notAuthorized, note: .foreignToken) }
        return enqueue(operation, limits)
    }

    /// Messages of the device whose PUBACK is not written yet.
    private var unacknowledged: Int {
        waiting.count { $0.isAcknowledgedPublish } + (step?.publish?.packetIdentifier == nil ? 0 : 1)
    }

    /// What the message asks for; nil if it presents something that is no token at all.
    private func operation(_ publish: MQTTPublish) -> Operation? {
        switch CourierTopic(publish.topic) {
        case .settings(let topic):
            guard let message = SettingsMessage(json: publish.payload) else {
                return .refuse(.payloadFormatInvalid, publish)
            }
            guard let app = app(topic, publish.properties) else {
                return .refuse(.implementationSpecificError, publish)
            }
            return .settings(message, app, publish)
        case .power:
            guard let message = PowerMessage(json: publish.payload) else {
                return .refuse(.payloadFormatInvalid, publish)
            }
            return .power(message, publish)
        case .token(let topic):
            guard let app = app(topic, publish.properties) else {
                return .refuse(.implementationSpecificError, publish)
            }
            return DeviceToken(hex: publish.payload).map { .token($0, app, publish) }
        case .notifications, .channel, nil:
            return .refuse(.notAuthorized, publish)
        }
    }

    /// Accepted.
    private func acknowledge(_ publish: MQTTPublish) -> Reaction {
        guard let identifier = publish.packetIdentifier else { return .none }
        return Reaction(actions: [.send(.puback(MQTTPublishAnswer(packetIdentifier: identifier)))])
    }

    /// Not accepted: 3.1.1 can only say so by closing (its [MQTT-3.3.5-2]); at QoS 0, MQTT 5 cannot say it.
    func refuse(_ code: MQTTReasonCode, _ publish: MQTTPublish, _ reason: String? = nil) -> Reaction {
        guard version == .v5 else { return .end(code) }
        guard let identifier = publish.packetIdentifier else { return .none }
        let properties: MQTTProperties = reportsProblems ? reason.map { [.reasonString($0)] } ?? [] : []
        let puback = MQTTPublishAnswer(packetIdentifier: identifier, reasonCode: code, properties: properties)
        return Reaction(actions: [.send(.puback(puback))])
    }

    func haveChanged(_ publish: MQTTPublish, _ result: SessionResult) -> Reaction {
        switch result {
        case .done: acknowledge(publish)
        case .notRegistered: refuse(.notAuthorized, publish, "the app is not registered")
        default: refuse(.unspecifiedError, publish)
        }
    }

    func haveChangedPower(_ message: PowerMessage, _ publish: MQTTPublish, _ result: SessionResult) -> Reaction {
        guard result == .done else { return refuse(.unspecifiedError, publish) }
        var reaction = acknowledge(publish)
        reaction.actions.append(.setSavingPower(message.saving))
        return reaction
    }

    /// A token in force needs no answer but PUBACK; a stale one is answered with the one in force, where the device
    /// can be told; every other ends the connection.
    mutating func haveExaminedToken(_ app: App, _ publish: MQTTPublish, _ result: SessionResult) -> Reaction {
        guard case .examined(let tokens) = result, let token = tokens.first else {
            return refuse(.unspecifiedError, publish)
        }
        switch token {
        case .current:
            return acknowledge(publish)
        case .stale where subscriptions.entry(app.topic)?.tokenQoS != nil,
            .outdated where subscriptions.entry(app.topic)?.tokenQoS != nil:
            return request(.register([app]), .findingToken(publish))
        case .outdated:
            return acknowledge(publish)
        case .stale, .foreign:
            return .end(.notAuthorized, note: .foreignToken)
        }
    }

    func haveFoundToken(_ publish: MQTTPublish, _ result: SessionResult) -> Reaction {
        guard case .registered(let apps, _) = result, let app = apps.first, let app else {
            return refuse(.unspecifiedError, publish)
        }
        var reaction = acknowledge(publish)
        if let token = app.token, let qualityOfService = subscriptions.entry(app.number)?.tokenQoS {
            reaction.actions.append(.sendToken(app.number, token, qualityOfService: qualityOfService))
        }
        return reaction
    }
}
