import HeraldModel
import HeraldWire

/// One UNSUBSCRIBE: removes apps with the last of their three filters.
///
/// Their tokens are dead before UNSUBACK says so.
struct UnsubscribeOperation {
    private enum Step {
        case begun
        case unregistering([App])
        case storing(MQTTSubscriptionAnswer)
    }

    private let packet: MQTTUnsubscribe
    private let limits: CourierConfiguration
    private var step = Step.begun
    /// The packet's filters, each read once; nil outside the device contract.
    private var filters: [CourierFilter?] = []

    init(_ packet: MQTTUnsubscribe, _ limits: CourierConfiguration) {
        self.packet = packet
        self.limits = limits
    }

    mutating func proceed(_ answer: RegistryAnswer?, _ session: inout MQTTSession) -> SessionOutput {
        switch step {
        case .begun: return begin(&session)
        case .unregistering(let apps):
            guard case .unregistered(let removed) = answer, removed.count == apps.count else {
                return finish(apps, apps.map { _ in nil }, &session)
            }
            return finish(apps, removed, &session)
        case .storing(let unsuback):
            // The apps are removed whether or not the session could be stored: a record that names an app which is not
            // registered is read without it.
            return .send(.unsuback(unsuback))
        }
    }

    private mutating func begin(_ session: inout MQTTSession) -> SessionOutput {
        guard packet.filters.count <= limits.filtersPerPacket else {
            // 3.1.1 cannot say in UNSUBACK that it failed.
            let words = "a packet may have \(limits.filtersPerPacket) filters"
            guard session.version == .v5 else { return .end(.quotaExceeded, words, fault: nil) }
            return refuseAll(session.reason(words))
        }
        guard EnvironmentProperty(packet.properties) != .unknown else {
            return refuseAll(session.reason(EnvironmentProperty.allowed))
        }
        filters = packet.filters.map { CourierFilter($0) }
        var rest = SubscriptionTable(session.subscriptions)
        var apps: [App] = []
        var topics: Set<Topic> = []
        for filter in filters.compactMap(\.self) {
            rest.remove(filter)
            // No filter of the app is left here. It may be registered all the same, if a clean start lost the
            // subscription: then the device means to remove it.
            guard let topic = filter.app, rest.entries[topic] == nil, !topics.contains(topic),
                let app = session.app(topic, packet.properties)
            else { continue }
            topics.insert(topic)
            apps.append(app)
        }
        guard !apps.isEmpty else { return finish([], [], &session) }
        step = .unregistering(apps)
        return .request(.unregister(apps))
    }

    /// UNSUBACK has no code for a quota (MQTT 5 §3.11.3).
    private func refuseAll(_ properties: MQTTProperties) -> SessionOutput {
        let codes = packet.filters.map { _ in MQTTReasonCode.implementationSpecificError }
        let identifier = packet.packetIdentifier
        return .send(
            .unsuback(MQTTSubscriptionAnswer(packetIdentifier: identifier, properties: properties, reasonCodes: codes))
        )
    }

    /// `removed` has for each app whether it was registered; nil where the registry failed.
    private mutating func finish(_ apps: [App], _ removed: [Bool?], _ session: inout MQTTSession) -> SessionOutput {
        // 3.1.1 cannot say in UNSUBACK that it failed, and the device must not believe that the app is gone.
        guard session.version == .v5 || !removed.contains(nil) else {
            return .end(.unspecifiedError, SessionOutput.failure, fault: nil)
        }
        let before = session.subscriptions
        var table = SubscriptionTable(before)
        let results = Dictionary(zip(apps.map(\.topic), removed)) { first, _ in first }
        var answered: Set<Topic> = []
        var codes: [MQTTReasonCode] = []
        for (name, filter) in zip(packet.filters, filters) {
            guard let filter else {
                codes.append(CourierFilterFault(name) == .malformed ? .topicFilterInvalid : .noSubscriptionExisted)
                continue
            }
            let result = filter.app.flatMap { results[$0] }
            if case .some(nil) = result {
                codes.append(.unspecifiedError)
                continue
            }
            let existed = table.contains(filter)
            table.remove(filter)
            // The first filter of a removed app answers for a registration that had lost its subscription.
            let isFirst = filter.app.map { answered.insert($0).inserted } ?? false
            codes.append(existed || (isFirst && result == true) ? .success : .noSubscriptionExisted)
        }
        session.subscriptions = SessionSubscriptions(table)
        var reasons: [String] = []
        if codes.contains(.unspecifiedError) { reasons.append(SessionOutput.failure) }
        if codes.contains(.topicFilterInvalid) { reasons.append("a wildcard stands where MQTT allows none") }
        let unsuback = MQTTSubscriptionAnswer(
            packetIdentifier: packet.packetIdentifier,
            properties: session.reason(reasons.joined(separator: "; ")),
            reasonCodes: codes
        )
        let changes = changes(from: before, in: &session)
        guard session.isStored, session.subscriptions != before else {
            return SessionOutput(actions: changes + [.send(.unsuback(unsuback))])
        }
        step = .storing(unsuback)
        return .request(.keep(session.record), after: changes)
    }

    /// The changes that the post office has to know.
    ///
    /// It is told before UNSUBACK is written, after which nothing new may be sent for the filters ([MQTT-3.10.4-3]).
    private func changes(from before: SessionSubscriptions, in session: inout MQTTSession) -> [ConnectionAction] {
        let after = session.subscriptions
        var removed: [AppNumber] = []
        var actions: [ConnectionAction] = []
        for entry in before.entries {
            guard let now = after.entry(entry.topic) else {
                removed.append(entry.number)
                continue
            }
            guard entry.notificationQoS != now.notificationQoS else { continue }
            let opening = now.notificationQoS.map { session.opening(entry.number, qualityOfService: $0) }
            actions.append(opening ?? .close(entry.number))
        }
        if !removed.isEmpty { actions.append(.remove(removed)) }
        session.tokens?.remove(removed)
        let channels = before.channels.keys.filter { after.channels[$0] == nil }
        let closed = channels.compactMap { ChannelFilter(CourierFilter($0)) }
        if !closed.isEmpty { actions.append(.closeChannels(closed)) }
        return actions
    }
}
