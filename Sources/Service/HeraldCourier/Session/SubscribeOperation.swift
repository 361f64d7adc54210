import HeraldMailbox
import HeraldModel
import HeraldWire

/// One SUBSCRIBE: registers its apps and stores the session's record, and only then answers with SUBACK.
struct SubscribeOperation {
    private enum Step {
        case begun
        case examiningTokens
        case findingChannels
        case registering
        case storing(MQTTSubscriptionAnswer, then: [ConnectionAction], before: SessionSubscriptions)
    }

    /// A filter of the packet, read once.
    private struct Request {
        let name: String
        /// Nil outside the device contract.
        let filter: CourierFilter?
        /// QoS 1 at most ([MQTT-3.2.2-9], [MQTT-3.8.4-8]).
        let grantedQoS: UInt8

        init(_ subscription: MQTTSubscription) {
            name = subscription.filter
            filter = CourierFilter(subscription.filter)
            grantedQoS = min(subscription.maximumQoS.rawValue, 1)
        }

        var grant: MQTTReasonCode { grantedQoS == 0 ? .grantedQoS0 : .grantedQoS1 }
        /// The filter of a channel; nil for every other.
        var channel: CourierFilter? { filter?.app == nil && filter != .service ? filter : nil }
    }

    /// The changes that the filters made to the session.
    private struct Changes {
        let before: SessionSubscriptions
        var table: SubscriptionTable
        /// For each wanted app, if it is registered.
        let apps: [RegisteredApp?]
        /// Topics for which a place is kept until they are granted.
        var places: Set<Topic>
        /// Whether a filter was refused because the session has as many as it may have.
        var lacksPlaces = false
        /// Indices of wanted apps whose notifications, or whose token, the packet asks for.
        var opened: Set<Int> = []
        var wantToken: Set<Int> = []
        var codes: [MQTTReasonCode] = []
        var channels: Set<ChannelFilter> = []
        /// Whether the packet asks for the service's announcements.
        var asksForService = false
        /// Entries of the other environment that a topic stood for until now.
        var replaced: [SessionSubscriptions.Entry] = []
    }

    private let packet: MQTTSubscribe
    /// The environment of the packet's apps.
    private let environment: PushEnvironment
    private let limits: CourierConfiguration
    private var step = Step.begun
    private var requests: [Request] = []
    /// Apps of which the device presented a token that is not the one in force.
    private var stale: Set<AppNumber> = []
    /// Opens apps of earlier packets whose tokens this one presents.
    private var opened: [ConnectionAction] = []
    private var knownChannels: Set<CourierFilter> = []
    private var wanted: [App] = []
    /// Indices of `wanted`.
    private var wantedIndex: [Topic: Int] = [:]
    /// Topics of the wanted apps that take a new place among the subscriptions.
    private var newTopics: Set<Topic> = []

    init(_ packet: MQTTSubscribe, in session: MQTTSession, _ limits: CourierConfiguration) {
        self.packet = packet
        self.limits = limits
        if case .named(let named) = EnvironmentProperty(packet.properties) {
            environment = named
        } else {
            environment = session.environment
        }
    }

    mutating func proceed(_ answer: RegistryAnswer?, _ session: inout MQTTSession) -> SessionOutput {
        switch step {
        case .begun: return begin(&session)
        case .examiningTokens: return examined(answer, &session)
        case .findingChannels:
            if case .foundChannels(let channels) = answer { knownChannels = channels }
            return register(&session)
        case .registering:
            guard case .registered(let apps, let refused) = answer, apps.count == wanted.count else {
                return grant(wanted.map { _ in nil }, refused: [:], &session)
            }
            return grant(apps, refused: refused, &session)
        case .storing(let suback, let then, let before):
            guard answer == .done else {
                session.subscriptions = before
                var suback = suback
                suback.reasonCodes = suback.reasonCodes.map { $0.isFailure ? $0 : .unspecifiedError }
                let reasons = [suback.properties.reasonString, SessionOutput.failure].compactMap(\.self)
                suback.properties = session.reason(reasons.joined(separator: "; "))
                return .send(.suback(suback), then: opened)
            }
            return .send(.suback(suback), then: then)
        }
    }

    // MARK: - Presented tokens and channels

    private mutating func begin(_ session: inout MQTTSession) -> SessionOutput {
        guard packet.subscriptions.count <= limits.filtersPerPacket else {
            return refuseAll(.quotaExceeded, session.reason("a packet may have \(limits.filtersPerPacket) filters"))
        }
        guard EnvironmentProperty(packet.properties) != .unknown else {
            return refuseAll(.implementationSpecificError, session.reason(EnvironmentProperty.allowed))
        }
        requests = packet.subscriptions.map { Request($0) }
        let presented = packet.properties.userProperties(named: "token")
        guard !presented.isEmpty else { return findChannels(&session) }
        let tokens = presented.compactMap { DeviceToken($0) }
        guard tokens.count == presented.count else { return .foreignToken }
        step = .examiningTokens
        return .request(.examine(tokens, for: nil, in: environment))
    }

    private func refuseAll(_ code: MQTTReasonCode, _ properties: MQTTProperties) -> SessionOutput {
        let codes = packet.subscriptions.map { _ in code }
        return .send(
            .suback(
                MQTTSubscriptionAnswer(
                    packetIdentifier: packet.packetIdentifier,
                    properties: properties,
                    reasonCodes: codes
                )
            )
        )
    }

    private mutating func examined(_ answer: RegistryAnswer?, _ session: inout MQTTSession) -> SessionOutput {
        guard case .examined(let tokens) = answer else {
            return refuseAll(.unspecifiedError, session.reason(SessionOutput.failure))
        }
        guard !tokens.contains(.foreign) else { return .foreignToken }
        for case .current(let app) in tokens { opened += session.present(app) }
        for case .outdated(let app) in tokens { opened += session.present(app) }
        let hearsToken = Set(session.subscriptions.entries.filter { $0.tokenQoS != nil }.map(\.number))
        stale = Set(
            tokens.compactMap { token -> AppNumber? in
                switch token {
                case .stale(let app): app
                // Where the device cannot be told, it stays good.
                case .outdated(let app): hearsToken.contains(app) ? app : nil
                case .current, .foreign: nil
                }
            }
        )
        return findChannels(&session)
    }

    private mutating func findChannels(_ session: inout MQTTSession) -> SessionOutput {
        let channels = requests.compactMap(\.channel)
        guard !channels.isEmpty else { return register(&session) }
        step = .findingChannels
        return .request(.findChannels(channels))
    }

    // MARK: - Apps

    private mutating func register(_ session: inout MQTTSession) -> SessionOutput {
        var room = limits.subscriptionsPerSession - session.subscriptions.count
        if packet.properties.subscriptionIdentifier == nil {
            for topic in requests.compactMap(\.filter?.app) where wantedIndex[topic] == nil {
                if session.subscriptions.entry(topic) == nil {
                    guard room > 0 else { continue }
                    room -= 1
                    newTopics.insert(topic)
                }
                want(App(topic: topic, environment: environment))
            }
        }
        // Apps subscribed to earlier: the device gets new tokens for their stale ones.
        for entry in session.subscriptions.entries
        where stale.contains(entry.number) && wantedIndex[entry.topic] == nil {
            want(App(topic: entry.topic, environment: entry.environment ?? session.environment))
        }
        guard !wanted.isEmpty else { return grant([], refused: [:], &session) }
        step = .registering
        return .request(.register(wanted))
    }

    private mutating func want(_ app: App) {
        wantedIndex[app.topic] = wanted.count
        wanted.append(app)
    }

    /// Grants or refuses each filter, and answers.
    ///
    /// `apps` has the registered ones of the wanted apps.
    private mutating func grant(
        _ apps: [RegisteredApp?],
        refused: [App: RegistrationRefusal],
        _ session: inout MQTTSession
    ) -> SessionOutput {
        let before = session.subscriptions
        var changes = Changes(before: before, table: SubscriptionTable(before), apps: apps, places: newTopics)
        let other = environment == session.environment ? nil : environment
        for request in requests {
            let index = request.filter?.app.flatMap { wantedIndex[$0] }
            let code: MQTTReasonCode
            if let fault = fault(request) {
                code = fault
            } else if request.filter == .service {
                code = grant(.service, request, &changes)
                changes.asksForService = !code.isFailure
            } else if let channel = request.channel {
                code = grant(channel: channel, request, &changes)
            } else if let filter = request.filter, let index, let app = apps[index] {
                let replaced = changes.table.add(filter, of: app, in: other, qualityOfService: request.grantedQoS)
                if let replaced { changes.replaced.append(replaced) }
                changes.places.remove(wanted[index].topic)
                if filter.matchesNotifications { changes.opened.insert(index) }
                if filter.matchesToken { changes.wantToken.insert(index) }
                code = request.grant
            } else if let index {
                code = refused[wanted[index]]?.code ?? .unspecifiedError
            } else {
                changes.lacksPlaces = true
                code = .quotaExceeded
            }
            changes.codes.append(code)
        }
        guard tellOfStaleTokens(&changes) else { return .foreignToken }
        session.subscriptions = SessionSubscriptions(changes.table)
        return finish(changes, refused, &session)
    }

    /// A stale token for which nothing is subscribed is refused as a foreign one.
    private func tellOfStaleTokens(_ changes: inout Changes) -> Bool {
        guard !stale.isEmpty else { return true }
        var rest = stale
        for (index, app) in changes.apps.enumerated() {
            guard let app, rest.contains(app.number), changes.table.entries[app.topic]?.tokenQoS != nil else {
                continue
            }
            rest.remove(app.number)
            changes.wantToken.insert(index)
        }
        return rest.isEmpty
    }

    /// The fault for which a filter is refused whatever the registry says.
    private func fault(_ request: Request) -> MQTTReasonCode? {
        guard packet.properties.subscriptionIdentifier == nil else { return .subscriptionIdentifiersNotSupported }
        guard request.filter == nil else { return nil }
        return switch CourierFilterFault(request.name) {
        case .malformed: .topicFilterInvalid
        case .shared: .sharedSubscriptionsNotSupported
        case .foreign: .notAuthorized
        }
    }

    private func grant(
        channel filter: CourierFilter,
        _ request: Request,
        _ changes: inout Changes
    ) -> MQTTReasonCode {
        // Refused, and not granted in silence: a device that mistypes an identifier, or uses the other environment, is told
        // so. That reveals no channel: an identifier has 128 bits, which cannot be guessed.
        guard knownChannels.contains(filter), let channel = ChannelFilter(filter) else { return .notAuthorized }
        let code = grant(filter, request, &changes)
        if !code.isFailure { changes.channels.insert(channel) }
        return code
    }

    private func grant(_ filter: CourierFilter, _ request: Request, _ changes: inout Changes) -> MQTTReasonCode {
        guard
            changes.table.contains(filter)
                || changes.table.count + changes.places.count < limits.subscriptionsPerSession
        else {
            changes.lacksPlaces = true
            return .quotaExceeded
        }
        changes.table.channels[filter.name] = request.grantedQoS
        return request.grant
    }

    // MARK: - SUBACK

    /// Stores the session's record, if it has one and the subscriptions changed, and answers.
    private mutating func finish(
        _ changes: Changes,
        _ refused: [App: RegistrationRefusal],
        _ session: inout MQTTSession
    ) -> SessionOutput {
        let foreign = foreignFilter
        let asked = changes.opened.compactMap { changes.apps[$0]?.number }
        let lacksToken = asked.contains(where: session.lacksToken)
        let suback = MQTTSubscriptionAnswer(
            packetIdentifier: packet.packetIdentifier,
            properties: session.reason(
                reason(foreign, refused, changes: changes, lacksToken: lacksToken, session)
            ),
            reasonCodes: changes.codes
        )
        let withheld = asked.count { !session.admits($0) }
        let then = actions(changes, session) + session.reportMissingTokens(of: withheld)
        let log = foreign.map { [ConnectionAction.logRefusedTopic(.subscribe($0))] } ?? []
        guard session.isStored, session.subscriptions != changes.before else {
            return SessionOutput(actions: log + [.send(.suback(suback))] + then)
        }
        step = .storing(suback, then: then, before: changes.before)
        return .request(.keep(session.record), after: log)
    }

    /// The first filter that is not of the device contract.
    private var foreignFilter: String? {
        requests.first { $0.filter == nil && CourierFilterFault($0.name) != .shared }?.name
    }

    /// The reason for refused filters, in words.
    private func reason(
        _ foreign: String?,
        _ refused: [App: RegistrationRefusal],
        changes: Changes,
        lacksToken: Bool,
        _ session: MQTTSession
    ) -> String? {
        let isUnknownChannel = requests.compactMap(\.channel).contains { !knownChannels.contains($0) }
        var reasons = Set(refused.values).map(\.description).sorted()
        let codes = Set(changes.codes)
        if codes.contains(.subscriptionIdentifiersNotSupported) { reasons.append("send no subscription identifier") }
        if codes.contains(.sharedSubscriptionsNotSupported) { reasons.append("subscriptions cannot be shared") }
        if codes.contains(.unspecifiedError) { reasons.append(SessionOutput.failure) }
        if changes.lacksPlaces {
            reasons.append("a session may have \(limits.subscriptionsPerSession) subscriptions")
        }
        if foreign != nil { reasons.append("a device may subscribe to \(RefusedTopic.allowedFilters)") }
        if isUnknownChannel { reasons.append("the app has no such channel in \(session.environment.rawValue)") }
        if lacksToken { reasons.append(MQTTSession.tokenDemand) }
        return reasons.isEmpty ? nil : reasons.joined(separator: "; ")
    }

    private func actions(_ changes: Changes, _ session: MQTTSession) -> [ConnectionAction] {
        let now = session.subscriptions
        var actions = opened
        if changes.asksForService, let qualityOfService = now.serviceQoS {
            // A device that names what it has is sent only what is newer.
            let version = packet.properties.userProperties(named: "version").first.flatMap { Int64($0) }
            actions += version.map { [.noteAnnouncement($0)] } ?? []
            actions.append(.announce(qualityOfService: qualityOfService, after: version ?? 0))
        }
        // Replaced apps of the other environment stay registered, and are sent nothing.
        if !changes.replaced.isEmpty { actions.append(.remove(changes.replaced.map(\.number))) }
        for former in changes.replaced {
            guard wantedIndex[former.topic].map({ !changes.opened.contains($0) }) ?? true,
                let entry = now.entry(former.topic), let qualityOfService = entry.notificationQoS
            else { continue }
            actions.append(session.opening(entry.number, qualityOfService: qualityOfService))
        }
        // The token first: it is small, and many notifications may wait.
        for (index, app) in changes.apps.enumerated() where changes.wantToken.contains(index) {
            guard let app, let token = app.token, let qualityOfService = now.entry(app.topic)?.tokenQoS else {
                continue
            }
            actions.append(.sendToken(app.number, token, qualityOfService: qualityOfService))
        }
        for (index, app) in changes.apps.enumerated() where changes.opened.contains(index) {
            guard let app, let qualityOfService = now.entry(app.topic)?.notificationQoS else { continue }
            actions.append(session.opening(app.number, qualityOfService: qualityOfService))
        }
        for channel in changes.channels {
            guard let qualityOfService = now.channels[channel.name] else { continue }
            actions.append(.openChannel(channel, qualityOfService: qualityOfService, acknowledged: 0))
        }
        return actions
    }
}

extension RegistrationRefusal {
    /// The reason code in SUBACK.
    fileprivate var code: MQTTReasonCode {
        switch self {
        case .unknownTopic: .notAuthorized
        case .tooManyAppsOnDevice, .tooManyNewNames, .tooManyApps: .quotaExceeded
        }
    }
}
