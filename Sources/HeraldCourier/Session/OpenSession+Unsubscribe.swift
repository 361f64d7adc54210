import HeraldMailbox
import HeraldModel
import HeraldWire

// UNSUBSCRIBE: with the last of an app's three filters the app is removed, and its token is dead before UNSUBACK says so.
extension OpenSession {
    mutating func beginUnsubscribe(_ unsubscribe: MQTTUnsubscribe) -> Reaction {
        var rest = subscriptions
        var topics: [Topic] = []
        for name in unsubscribe.filters {
            guard let filter = CourierFilter(name) else { continue }
            rest.remove(filter)
            // Nothing is left of the app here. It may be registered all the same, if a clean start lost the
            // subscription: then the device means to remove it.
            guard let topic = filter.app, rest.entry(topic) == nil, !topics.contains(topic) else { continue }
            topics.append(topic)
        }
        guard !topics.isEmpty else { return haveUnregistered(unsubscribe, [], .unregistered([])) }
        return request(.unregister(topics), .unregistering(unsubscribe, topics))
    }

    mutating func haveUnregistered(
        _ unsubscribe: MQTTUnsubscribe,
        _ topics: [Topic],
        _ result: SessionResult
    ) -> Reaction {
        var stood: [Bool?] = topics.map { _ in nil }
        if case .unregistered(let answers) = result, answers.count == topics.count { stood = answers }
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
            let index = filter.app.flatMap { topics.firstIndex(of: $0) }
            if let index, stood[index] == nil {
                codes.append(.unspecifiedError)
                continue
            }
            let existed = subscriptions.contains(filter)
            subscriptions.remove(filter)
            // The first filter of a removed app answers for a registration that had lost its subscription.
            let removed = index.map { stood[$0] == true && !answered.contains(topics[$0]) } ?? false
            if let index { answered.append(topics[index]) }
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
