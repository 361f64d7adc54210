import HeraldMailbox
import HeraldModel
import HeraldWire

// SUBSCRIBE: apps are registered, the session's record is kept, and only then SUBACK says so.
extension OpenSession {
    mutating func beginSubscribe(_ subscribe: MQTTSubscribe, _ limits: CourierConfiguration) -> Reaction {
        let environment: PushEnvironment
        switch NamedEnvironment(subscribe.properties) {
        case .none: environment = self.environment
        case .named(let named): environment = named
        case .unknown:
            let codes = subscribe.subscriptions.map { _ in MQTTReasonCode.implementationSpecificError }
            return answer(subscribe, codes, NamedEnvironment.words)
        }
        let presented = subscribe.properties.userProperties(named: "token")
        guard !presented.isEmpty else { return beginFindingChannels(subscribe, stale: [], limits) }
        let tokens = presented.compactMap { DeviceToken($0) }
        guard tokens.count == presented.count else { return .end(.notAuthorized, note: .foreignToken) }
        return request(.examine(tokens, for: nil, in: environment), .examining(subscribe))
    }

    mutating func haveExamined(
        _ subscribe: MQTTSubscribe,
        _ result: SessionResult,
        _ limits: CourierConfiguration
    ) -> Reaction {
        guard case .examined(let tokens) = result else {
            return answer(subscribe, subscribe.subscriptions.map { _ in .unspecifiedError })
        }
        guard !tokens.contains(.foreign) else { return .end(.notAuthorized, note: .foreignToken) }
        let stale = tokens.compactMap { token -> AppNumber? in
            switch token {
            case .stale(let app): app
            // Where the device cannot be told, it stays good.
            case .outdated(let app): subscriptions.entry(app)?.tokenQoS == nil ? nil : app
            case .current, .foreign: nil
            }
        }
        return beginFindingChannels(subscribe, stale: stale, limits)
    }

    private mutating func beginFindingChannels(
        _ subscribe: MQTTSubscribe,
        stale: [AppNumber],
        _ limits: CourierConfiguration
    ) -> Reaction {
        let channels = subscribe.subscriptions.compactMap { subscription in
            CourierFilter(subscription.filter).flatMap { $0.app == nil ? $0 : nil }
        }
        guard !channels.isEmpty else { return beginRegistering(subscribe, stale: stale, limits) }
        return request(.findChannels(channels), .findingChannels(subscribe, stale: stale))
    }

    mutating func haveFoundChannels(
        _ subscribe: MQTTSubscribe,
        _ stale: [AppNumber],
        _ result: SessionResult,
        _ limits: CourierConfiguration
    ) -> Reaction {
        if case .foundChannels(let channels) = result { knownChannels = channels }
        return beginRegistering(subscribe, stale: stale, limits)
    }

    private mutating func beginRegistering(
        _ subscribe: MQTTSubscribe,
        stale: [AppNumber],
        _ limits: CourierConfiguration
    ) -> Reaction {
        var wanted: [App] = []
        if subscribe.properties.subscriptionIdentifier == nil {
            for subscription in subscribe.subscriptions {
                guard let topic = CourierFilter(subscription.filter)?.app,
                    !wanted.contains(where: { $0.topic == topic })
                else { continue }
                guard subscriptions.entry(topic) != nil || wanted.count < roomForApps(limits) else { continue }
                wanted.append(App(topic: topic, environment: environment(of: subscribe)))
            }
        }
        // Apps subscribed to earlier, of whose stale tokens the device is to be told.
        for entry in subscriptions.entries
        where stale.contains(entry.number) && !wanted.contains(where: { $0.topic == entry.topic }) {
            wanted.append(App(topic: entry.topic, environment: entry.environment ?? environment))
        }
        guard !wanted.isEmpty else {
            return haveRegistered(subscribe, [], stale, .registered([]), limits)
        }
        return request(.register(wanted), .registering(subscribe, wanted, stale: stale))
    }

    private func roomForApps(_ limits: CourierConfiguration) -> Int {
        max(0, limits.subscriptionsPerSession - subscriptions.count)
    }

    mutating func haveRegistered(
        _ subscribe: MQTTSubscribe,
        _ wanted: [App],
        _ stale: [AppNumber],
        _ result: SessionResult,
        _ limits: CourierConfiguration
    ) -> Reaction {
        var apps: [RegisteredApp?] = wanted.map { _ in nil }
        var refused: Set<App> = []
        if case .registered(let registered, let overQuota) = result, registered.count == wanted.count {
            (apps, refused) = (registered, overQuota)
        }
        let before = subscriptions
        defer { knownChannels = [] }
        var codes: [MQTTReasonCode] = []
        var channels: [ChannelFilter] = []
        var touched: [RegisteredApp] = []
        var wantToken: [RegisteredApp] = []
        var left: [AppNumber] = []
        for subscription in subscribe.subscriptions {
            let filter = CourierFilter(subscription.filter)
            let index = filter?.app.flatMap { topic in wanted.firstIndex { $0.topic == topic } }
            let isTried = index.map { !refused.contains(wanted[$0]) } ?? false
            let app = index.flatMap { apps[$0] }
            let code = grant(subscription, filter, app, isTried: isTried, subscribe, limits, &left)
            codes.append(code)
            if !code.isFailure, let channel = ChannelFilter(filter), !channels.contains(channel) {
                channels.append(channel)
            }
            guard !code.isFailure, let filter, let index, let app = apps[index] else { continue }
            if filter.matchesNotifications, !touched.contains(app) { touched.append(app) }
            if filter.matchesToken, !wantToken.contains(app) { wantToken.append(app) }
        }
        for number in stale {
            // A stale token for which nothing is subscribed is refused as a foreign one.
            guard subscriptions.entry(number)?.tokenQoS != nil,
                let app = apps.first(where: { $0?.number == number }) ?? nil
            else {
                subscriptions = before
                return .end(.notAuthorized, note: .foreignToken)
            }
            if !wantToken.contains(app) { wantToken.append(app) }
        }
        return keep(
            MQTTSuback(
                packetIdentifier: subscribe.packetIdentifier,
                properties: wordsOfChannels(subscribe),
                reasonCodes: codes
            ),
            before,
            touched,
            wantToken,
            channels,
            left
        )
    }

    /// What a refused channel is refused for, where the device takes words.
    private func wordsOfChannels(_ subscribe: MQTTSubscribe) -> MQTTProperties {
        let isUnknown = subscribe.subscriptions.contains { subscription in
            CourierFilter(subscription.filter).map { $0.app == nil && !knownChannels.contains($0) } ?? false
        }
        guard isUnknown, version == .v5, reportsProblems else { return [] }
        return [.reasonString("the app has no such channel in \(environment.rawValue)")]
    }

    /// One filter's reason code; a granted one is subscribed to, at QoS 1 at the most ([MQTT-3.2.2-9], [MQTT-3.8.4-8]).
    private mutating func grant(
        _ subscription: MQTTSubscription,
        _ filter: CourierFilter?,
        _ app: RegisteredApp?,
        isTried: Bool,
        _ subscribe: MQTTSubscribe,
        _ limits: CourierConfiguration,
        _ left: inout [AppNumber]
    ) -> MQTTReasonCode {
        guard subscribe.properties.subscriptionIdentifier == nil else { return .subscriptionIdentifiersNotSupported }
        guard let filter else {
            switch CourierFilterFault(subscription.filter) {
            case .malformed: return .topicFilterInvalid
            case .shared: return .sharedSubscriptionsNotSupported
            case .foreign: return .notAuthorized
            }
        }
        let qualityOfService = min(subscription.maximumQoS.rawValue, 1)
        if filter.app == nil {
            // Refused, and not granted in silence: who mistypes an identifier, or comes by the name of the other
            // environment, is told. Which channels there are is no secret to be kept by that: nobody guesses 128 bits.
            guard knownChannels.contains(filter) else { return .notAuthorized }
            guard subscriptions.contains(filter) || roomForApps(limits) > 0 else { return .quotaExceeded }
            subscriptions.add(channel: filter, qualityOfService: qualityOfService)
        } else {
            guard isTried else { return .quotaExceeded }
            guard let app else { return .unspecifiedError }
            let environment = environment(of: subscribe)
            let other = environment == self.environment ? nil : environment
            if let former = subscriptions.add(filter, of: app, in: other, qualityOfService: qualityOfService) {
                left.append(former)
            }
        }
        return qualityOfService == 0 ? .grantedQoS0 : .grantedQoS1
    }

    /// Keeps the session's record, if it has one and the subscriptions changed, and answers.
    private mutating func keep(
        _ suback: MQTTSuback,
        _ before: SessionSubscriptions,
        _ touched: [RegisteredApp],
        _ wantToken: [RegisteredApp],
        _ channels: [ChannelFilter],
        _ left: [AppNumber]
    ) -> Reaction {
        // What its topics stood for before they went to the other environment is registered still, and not sent.
        var then = left.map { SessionAction.forget($0) }
        for number in left {
            guard let topic = before.entry(number)?.topic, let entry = subscriptions.entry(topic),
                !touched.contains(where: { $0.number == entry.number }), let qualityOfService = entry.notificationQoS
            else { continue }
            then.append(.open(entry.number, qualityOfService: qualityOfService))
        }
        // The token first: it is small, and what waits may be much.
        for app in wantToken {
            guard let token = app.token, let qualityOfService = subscriptions.entry(app.number)?.tokenQoS else {
                continue
            }
            then.append(.sendToken(app.number, token, qualityOfService: qualityOfService))
        }
        for app in touched {
            guard let qualityOfService = subscriptions.entry(app.number)?.notificationQoS else { continue }
            then.append(.open(app.number, qualityOfService: qualityOfService))
        }
        for channel in channels {
            guard let qualityOfService = subscriptions.channels[channel.name] else { continue }
            then.append(.openChannel(channel, qualityOfService: qualityOfService, acknowledged: 0))
        }
        guard isStored, subscriptions != before else {
            return Reaction(actions: [.send(.suback(suback))] + then)
        }
        return request(.keep(record), .keepingSubscriptions(suback, then: then, before: before))
    }

    mutating func haveKept(
        _ suback: MQTTSuback,
        _ then: [SessionAction],
        _ before: SessionSubscriptions,
        _ result: SessionResult
    ) -> Reaction {
        guard result == .done else {
            subscriptions = before
            var suback = suback
            suback.reasonCodes = suback.reasonCodes.map { $0.isFailure ? $0 : .unspecifiedError }
            return Reaction(actions: [.send(.suback(suback))])
        }
        return Reaction(actions: [.send(.suback(suback))] + then)
    }

    private func answer(_ subscribe: MQTTSubscribe, _ codes: [MQTTReasonCode], _ words: String? = nil) -> Reaction {
        let suback = MQTTSuback(
            packetIdentifier: subscribe.packetIdentifier,
            properties: reportsProblems ? words.map { [.reasonString($0)] } ?? [] : [],
            reasonCodes: codes
        )
        return Reaction(actions: [.send(.suback(suback))])
    }

    /// In which environment its apps are registered.
    private func environment(of subscribe: MQTTSubscribe) -> PushEnvironment {
        if case .named(let named) = NamedEnvironment(subscribe.properties) { named } else { environment }
    }
}
