import HeraldModel
import HeraldWire

/// The packets of a device's requests.
extension MQTTPacket {
    /// Registers an app, and presents its token.
    static func register(_ app: DeviceApp, _ token: DeviceToken?, _ identifier: UInt16) -> MQTTPacket {
        var properties = properties(of: app)
        if let token { properties.append(.userProperty(name: "token", value: token.hex)) }
        return subscribe(to: CourierFilter.everything(app.topic).name, identifier, properties)
    }

    /// Removes an app.
    static func remove(_ app: DeviceApp, _ identifier: UInt16) -> MQTTPacket {
        unsubscribe(from: CourierFilter.everything(app.topic).name, identifier, properties(of: app))
    }

    static func subscribe(to filter: String, _ identifier: UInt16, _ properties: MQTTProperties = []) -> MQTTPacket {
        .subscribe(
            MQTTSubscribe(
                packetIdentifier: identifier,
                properties: properties,
                subscriptions: [MQTTSubscription(filter: filter)]
            )
        )
    }

    static func unsubscribe(
        from filter: String,
        _ identifier: UInt16,
        _ properties: MQTTProperties = []
    ) -> MQTTPacket {
        .unsubscribe(MQTTUnsubscribe(packetIdentifier: identifier, properties: properties, filters: [filter]))
    }

    /// Publishes settings, the power mode or a token.
    static func message(_ topic: CourierTopic, _ text: String, _ identifier: UInt16) -> MQTTPacket {
        .publish(
            MQTTPublish(
                topic: topic.name,
                packetIdentifier: identifier,
                qualityOfService: .atLeastOnce,
                payload: Array(text.utf8)
            )
        )
    }

    private static func properties(of app: DeviceApp) -> MQTTProperties {
        guard let environment = app.environment else { return [] }
        return [.userProperty(name: "environment", value: environment.rawValue)]
    }
}
