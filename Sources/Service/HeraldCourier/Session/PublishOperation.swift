import HeraldModel
import HeraldWire

/// One PUBLISH of a device: the settings of an app, its power, a token that it presents, or the announcement that it has.
struct PublishOperation {
    private enum Content {
        case settings(isEnabled: Bool, App)
        case power(isSaving: Bool)
        /// The version of the announcement that the device has.
        case announcement(Int64)
        case token(DeviceToken, App)
        /// The current token of the app is being read: the presented one is stale or outdated.
        case currentToken
        /// Refused without the registry, in its turn.
        case refused(MQTTReasonCode, String, RefusedTopic? = nil)
    }

    private let publish: MQTTPublish
    private var content: Content

    /// Nil for a token that is not the text of any token.
    init?(_ publish: MQTTPublish, _ session: MQTTSession) {
        self.publish = publish
        let app = { session.app($0, publish.properties) }
        switch CourierTopic(publish.topic) {
        case .settings(let topic):
            content = PublishOperation.read(publish, DeviceMessage.enabled.truth) { isEnabled in
                app(topic).map { .settings(isEnabled: isEnabled, $0) } ?? PublishOperation.unknownEnvironment
            }
        case .power: content = PublishOperation.read(publish, DeviceMessage.saving.truth) { .power(isSaving: $0) }
        case .service: content = PublishOperation.read(publish, DeviceMessage.announcement) { .announcement($0) }
        case .token(let topic):
            guard let app = app(topic) else {
                content = PublishOperation.unknownEnvironment
                return
            }
            guard let token = DeviceToken(hex: publish.payload) else { return nil }
            content = .token(token, app)
        case .notifications, .channel, nil:
            let words = "a device may publish to \(RefusedTopic.allowedTopics)"
            content = .refused(.notAuthorized, words, .publish(publish.topic))
        }
    }

    private static let unknownEnvironment = Content.refused(.implementationSpecificError, EnvironmentProperty.allowed)

    private static func read<Value>(
        _ publish: MQTTPublish,
        _ value: ([UInt8]) throws(DeviceMessage.Fault) -> Value,
        _ content: (Value) -> Content
    ) -> Content {
        do {
            return content(try value(publish.payload))
        } catch {
            return .refused(.payloadFormatInvalid, error.message, .payload(publish.topic, error.message))
        }
    }

    var awaitsPuback: Bool { publish.packetIdentifier != nil }

    mutating func proceed(_ answer: RegistryAnswer?, _ session: inout MQTTSession) -> SessionOutput {
        guard let answer else { return begin(session) }
        switch content {
        case .settings:
            switch answer {
            case .done: return acknowledge()
            case .notRegistered: return refuse(.notAuthorized, session, "the app is not registered")
            default: return refuse(.unspecifiedError, session, SessionOutput.failure)
            }
        case .power(let isSaving):
            guard answer == .done else { return refuse(.unspecifiedError, session, SessionOutput.failure) }
            return acknowledge(then: [.setSavingPower(isSaving)])
        case .token(_, let app): return examined(answer, app, &session)
        case .currentToken: return sendCurrentToken(answer, session)
        case .announcement, .refused: return SessionOutput()
        }
    }

    private func begin(_ session: MQTTSession) -> SessionOutput {
        switch content {
        case .settings(let isEnabled, let app): return .request(.setEnabled(isEnabled, app))
        case .power(let isSaving): return .request(.setSavingPower(isSaving))
        case .token(let token, let app):
            return .request(.examine([token], for: app.topic, in: app.environment))
        case .announcement(let version): return acknowledge(then: [.noteAnnouncement(version)])
        case .refused(let code, let reason, let topic):
            var output = refuse(code, session, reason)
            if let topic { output.actions.insert(.logRefusedTopic(topic), at: 0) }
            return output
        case .currentToken: return SessionOutput()
        }
    }

    /// Accepts a token in force with PUBACK alone.
    ///
    /// Answers a stale one with the one in force, if the device is subscribed to it. Every other token ends the connection.
    private mutating func examined(
        _ answer: RegistryAnswer,
        _ app: App,
        _ session: inout MQTTSession
    ) -> SessionOutput {
        guard case .examined(let tokens) = answer, let token = tokens.first else {
            return refuse(.unspecifiedError, session, SessionOutput.failure)
        }
        let hearsToken = session.subscriptions.entry(app.topic)?.tokenQoS != nil
        switch token {
        case .current(let number): return acknowledge(then: session.present(number))
        case .stale where hearsToken:
            content = .currentToken
            return .request(.register([app]))
        case .outdated(let number):
            let opened = session.present(number)
            guard hearsToken else { return acknowledge(then: opened) }
            content = .currentToken
            return .request(.register([app]), after: opened)
        case .stale, .foreign: return .foreignToken
        }
    }

    private func sendCurrentToken(_ answer: RegistryAnswer, _ session: MQTTSession) -> SessionOutput {
        guard case .registered(let apps, _) = answer, let app = apps.first, let app else {
            return refuse(.unspecifiedError, session, SessionOutput.failure)
        }
        guard let token = app.token, let qualityOfService = session.subscriptions.entry(app.topic)?.tokenQoS else {
            return acknowledge()
        }
        return acknowledge(then: [.sendToken(app.number, token, qualityOfService: qualityOfService)])
    }

    private func acknowledge(then actions: [ConnectionAction] = []) -> SessionOutput {
        guard let identifier = publish.packetIdentifier else { return SessionOutput(actions: actions) }
        return .send(.puback(MQTTPublishAnswer(packetIdentifier: identifier)), then: actions)
    }

    /// 3.1.1 can only refuse by closing (its [MQTT-3.3.5-2]); at QoS 0, MQTT 5 cannot refuse.
    private func refuse(_ code: MQTTReasonCode, _ session: MQTTSession, _ reason: String) -> SessionOutput {
        guard session.version == .v5 else { return .end(code, reason) }
        guard let identifier = publish.packetIdentifier else { return SessionOutput() }
        let properties = session.reason(reason)
        return .send(
            .puback(MQTTPublishAnswer(packetIdentifier: identifier, reasonCode: code, properties: properties))
        )
    }
}
