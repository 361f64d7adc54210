import HeraldMailbox
import HeraldModel
import HeraldWire
import Synchronization

extension SessionMachine {
    /// Checks a CONNECT, and asks the registry to let the device in.
    mutating func receivedConnect(_ connect: MQTTConnect) -> [SessionAction] {
        // [MQTT-4.12.0-1]: no authentication beyond the certificate.
        guard connect.properties.authenticationMethod == nil else {
            return refuse(connect.version, .badAuthenticationMethod, "the certificate is all that is asked for")
        }
        guard isRightIdentifier(connect) else {
            // [MQTT-3.1.3-5] of 3.1.1 and of MQTT 5 obliges a server to *allow* identifiers of 1 to 23 letters and
            // digits; which one a client may use is a matter of authorization, and the certificate says it.
            return refuse(
                connect.version,
                .clientIdentifierNotValid,
                "use \(device.name)",
                note: .wrongClientIdentifier
            )
        }
        if connect.version == .v5, let will = connect.will {
            // Wills are accepted and never published, but for what CONNACK would have announced.
            guard will.qualityOfService != .exactlyOnce else { return refuse(.v5, .qosNotSupported) }
            guard !will.isRetained else { return refuse(.v5, .retainNotSupported) }
        }
        phase = .arriving(connect)
        return [.request(.arrive)]
    }

    /// Byte for byte that of the certificate; or empty, where the session is clean ([MQTT-3.1.3-6], [MQTT-3.1.3-8] and
    /// 3.1.1's [MQTT-3.1.3-7]).
    private func isRightIdentifier(_ connect: MQTTConnect) -> Bool {
        let identifier = connect.clientIdentifier
        return identifier.isEmpty ? connect.isClean : identifier.utf8.elementsEqual(device.name.utf8)
    }

    /// The registry has answered: the session is resumed, or a new one is made.
    mutating func arrived(_ connect: MQTTConnect, _ result: SessionResult, now: WallTime) -> [SessionAction] {
        guard case .arrived(let arrival) = result else {
            return result == .tooManyTakeovers
                ? refuse(
                    connect.version,
                    .quotaExceeded,
                    "another connection uses this certificate",
                    note: .tooManyTakeovers
                )
                : refuse(connect.version, .serverUnavailable, note: .unavailable)
        }
        let stored = arrival.record.session
        let isResumed = !connect.isClean && isAlive(stored, now: now)
        var session = OpenSession(
            version: connect.version,
            device: arrival.device,
            environment: environment,
            expiryInterval: sessionExpiry(connect),
            connectExpiryInterval: connect.properties.sessionExpiryInterval ?? 0,
            subscriptions: isResumed
                ? SessionSubscriptions(
                    record: stored?.subscriptions ?? [:],
                    environments: stored?.environments,
                    apps: arrival.apps
                )
                : SessionSubscriptions(),
            reportsProblems: connect.properties.requestProblemInformation != 0
        )
        // Of a new session each token comes with its SUBACK; of a resumed one the key is noted once they have arrived.
        session.tokenKey = isResumed ? stored?.tokenKey : arrival.tokenKey
        session.newTokenKey = arrival.tokenKey
        let terms = SessionTerms(
            device: arrival.device,
            fence: arrival.fence,
            isSavingPower: arrival.record.isSavingPower,
            window: window(connect),
            maximumPacketSize: connect.properties.maximumPacketSize.map { Int($0) } ?? .max,
            longestSilence: 1.5 * keepAlive(connect),
            isResumed: isResumed,
            broadcasts: isResumed ? stored?.broadcasts ?? [:] : [:]
        )
        let record = session.record
        let tokens = isResumed && session.tokenKey != arrival.tokenKey ? arrival.apps : []
        guard record == stored else {
            // Stored before it is spoken of: CONNACK says what the service will still know after a crash.
            phase = .keeping(connect, session, terms, tokens)
            return [.request(.keep(record))]
        }
        return open(connect, session, terms, tokens)
    }

    /// Attaches the device, answers, and opens what the session is subscribed to.
    ///
    /// A device that resumes its session does not subscribe, and so is sent here the tokens of another key than those
    /// that it was sent before.
    mutating func open(
        _ connect: MQTTConnect,
        _ session: OpenSession,
        _ terms: SessionTerms,
        _ tokens: [RegisteredApp]
    ) -> [SessionAction] {
        var session = session
        session.isStored = session.expiryInterval > 0
        phase = .open(session)
        let connack = MQTTConnack(
            isSessionPresent: terms.isResumed,
            properties: connect.version == .v5 ? announcements(connect, session) : []
        )
        var actions: [SessionAction] = [.attach(terms), .send(.connack(connack))]
        for app in tokens {
            guard let token = app.token, let qualityOfService = session.subscriptions.entry(app.number)?.tokenQoS else {
                continue
            }
            actions.append(.sendToken(app.number, token, qualityOfService: qualityOfService))
        }
        for entry in session.subscriptions.entries {
            if let qualityOfService = entry.notificationQoS {
                actions.append(.open(entry.number, qualityOfService: qualityOfService))
            }
        }
        for (name, qualityOfService) in session.subscriptions.channels {
            guard let channel = ChannelFilter(CourierFilter(name)) else { continue }
            let acknowledged = terms.broadcasts[name] ?? 0
            actions.append(.openChannel(channel, qualityOfService: qualityOfService, acknowledged: acknowledged))
        }
        return actions
    }

    /// Whether a stored session goes on.
    ///
    /// One without expiry ended with its connection, however that ended.
    private func isAlive(_ session: SessionRecord?, now: WallTime) -> Bool {
        guard let session, session.environment == environment, session.expiryInterval > 0 else { return false }
        return !session.isExpired(at: now)
    }

    /// Seconds; what the client asks for, or as long as sessions are kept.
    ///
    /// 3.1.1 has only "with the connection" and "for ever" (MQTT 5 §3.1.2.11.2 maps them).
    private func sessionExpiry(_ connect: MQTTConnect) -> UInt32 {
        let longest = UInt32(clamping: limits.longestSession.load(ordering: .relaxed))
        switch connect.version {
        case .v5: return min(connect.properties.sessionExpiryInterval ?? 0, longest)
        case .v311: return connect.isClean ? 0 : longest
        }
    }

    private func window(_ connect: MQTTConnect) -> Int {
        let limits = limits.configuration
        guard connect.version == .v5 else { return limits.windowWithoutReceiveMaximum }
        return min(Int(connect.properties.receiveMaximum ?? .max), limits.largestWindow)
    }

    /// Seconds; the client's own, or the longest that is allowed.
    private func keepAlive(_ connect: MQTTConnect) -> Double {
        let longest = limits.longestKeepAlive.load(ordering: .relaxed)
        let wanted = Int64(connect.keepAlive)
        return Double(wanted == 0 ? longest : min(wanted, longest))
    }

    /// What MQTT 5 lets the server say of itself (§3.2.2.3).
    private func announcements(_ connect: MQTTConnect, _ session: OpenSession) -> MQTTProperties {
        let limits = limits.configuration
        var properties: MQTTProperties = [
            .receiveMaximum(limits.receiveMaximum),
            .maximumQoS(1),
            .retainAvailable(0),
            .maximumPacketSize(UInt32(clamping: limits.maximumPacketBytes)),
            .topicAliasMaximum(0),
            .subscriptionIdentifierAvailable(0),
            .sharedSubscriptionAvailable(0),
        ]
        if session.expiryInterval != connect.properties.sessionExpiryInterval ?? 0 {
            properties.append(.sessionExpiryInterval(session.expiryInterval))
        }
        if connect.clientIdentifier.isEmpty { properties.append(.assignedClientIdentifier(device.name)) }
        let keepAlive = UInt16(clamping: Int64(keepAlive(connect)))
        if keepAlive != connect.keepAlive { properties.append(.serverKeepAlive(keepAlive)) }
        return properties
    }
}
