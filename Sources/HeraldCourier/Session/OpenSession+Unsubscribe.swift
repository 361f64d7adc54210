import HeraldMailbox
import HeraldModel
import HeraldWire

// UNSUBSCRIBE: with the last of an app's three filters the app is removed, and its token is dead before UNSUBACK says so.
extension OpenSession {
    mutating func beginUnsubscribe(_ unsubscribe: MQTTUnsubscribe) -> Reaction {
        guard NamedEnvironment(unsubscribe.properties) != .unknown else {
            let codes = unsubscribe.filters.map { _ in MQTTReasonCode.implementationSpecificError }
            let unsuback = MQTTUnsuback(
                packetIdentifier: unsubscribe.packetIdentifier,
                properties: reportsProblems ? [.reasonString(NamedEnvironment.words)] : [],
                reasonCodes: codes
            )
            return Reaction(actions: [.send(.unsuback(unsuback))])
        }
        var rest = subscriptions
        var apps: [App] = []
        for name in unsubscribe.filters {
            guard let filter = CourierFilter(name) else { continue }
            rest.remove(filter)
            // Nothing is left of the app here. It may be registered all the same, if a clean start lost the
            // subscription: then the device means to remove it.
            guard let topic = filter.app, rest.entry(topic) == nil, !apps.contains(where: { $0.topic == topic }),
                let app = app(topic, unsubscribe.properties)
            else { continue }
            apps.append(app)
        }
        guard !apps.isEmpty else { return haveUnregistered(unsubscribe, [], .unregistered([])) }
        return request(.unregister(apps), .unregistering(unsubscribe, apps))
    }

    mutating func haveUnregistered(
        _ unsubscribe: MQTTUnsubscribe,
        _ apps: [App],
        _ result: SessionResult
    ) -> Reaction {
        var stood: [Bool?] = apps.map { _ in nil }
        if case .unregistered(let answers) = result, answers.count == apps.count { stood = answers }
        // 3.1.1 cannot say in UNSUBACK that it failed, and the device must not believe that the app is gone.
        guard version == .v5 || !stood.contains(nil) else { return .end(.unspecifiedError, note: nil) }
        let before = subscriptions
        var answered: [Topic] = []
        var codes: [MQTTReasonCode] = []
        for name in unsubscribe.filters {
            guard let filter = CourierFilter(name) else {
                codes.append(CourierFilterFault(name) == .malformed ? .topicFilterInvalid : .noSubscriptionExisted)
                continue
            }
            let index = filter.app.flatMap { topic in apps.firstIndex { $0.topic == topic } }
            if let index, stood[index] == nil {
                codes.append(.unspecifiedError)
                continue
            }
            let existed = subscriptions.contains(filter)
            subscriptions.remove(filter)
            // The first filter of a removed app answers for a registration that had lost its subscription.
            let removed = index.map { stood[$0] == true && !answered.contains(apps[$0].topic) } ?? false
            if let index { answered.append(apps[index].topic) }
            codes.append(existed || removed ? .success : .noSubscriptionExisted)
        }
        let unsuback = MQTTUnsuback(packetIdentifier: unsubscribe.packetIdentifier, reasonCodes: codes)
        let then = changes(from: before)
        guard isStored, subscriptions != before else { return Reaction(actions: then + [.send(.unsuback(unsuback))]) }
        return Reaction(
            actions: then + request(.keep(record), .keepingRest(unsuback)).actions
        )
    }

    /// What the post office is to know of the subscriptions that went.
    ///
    /// Told before UNSUBACK is written, after which nothing new may be sent for them ([MQTT-3.10.4-3]).
    private func changes(from before: SessionSubscriptions) -> [SessionAction] {
        let apps = before.entries.compactMap { entry -> SessionAction? in
            guard let now = subscriptions.entry(entry.number) else { return .forget(entry.number) }
            guard entry.notificationQoS != now.notificationQoS else { return nil }
            return now.notificationQoS.map { .open(entry.number, qualityOfService: $0) } ?? .close(entry.number)
        }
        let channels = before.channels.keys.compactMap { name -> SessionAction? in
            guard subscriptions.channels[name] == nil else { return nil }
            return ChannelFilter(CourierFilter(name)).map { .closeChannel($0) }
        }
        return apps + channels
    }
}
