import HeraldMailbox
import HeraldModel
import HeraldWire
import Synchronization

/// The refusal of a CONNECT.
struct ConnectRefusal {
    let code: MQTTReasonCode
    let reason: String
    /// Where the device is to connect instead (MQTT 5 §4.11).
    var serverReference: String?
    var fault: ConnectionFault?

    static let unavailable = ConnectRefusal(
        code: .serverUnavailable,
        reason: "the service cannot admit devices now: try again",
        fault: .unavailable
    )
    static let busy = ConnectRefusal(
        code: .serverBusy,
        reason: "too many devices connect at once: try again later",
        fault: .busy
    )
    static let tooManyTakeovers = ConnectRefusal(
        code: .quotaExceeded,
        reason: "another connection uses this certificate",
        fault: .tooManyTakeovers
    )
}

extension ConnectRefusal {
    /// The refusal for an answer of the registry that does not admit the device.
    init(_ answer: RegistryAnswer) {
        self =
            switch answer {
            case .tooManyTakeovers: .tooManyTakeovers
            case .busy: .busy
            default: .unavailable
            }
    }
}

/// A session as CONNECT and the stored record make it.
struct NegotiatedSession {
    let session: MQTTSession
    let terms: SessionTerms
    /// The apps whose tokens are sent after CONNACK.
    let tokens: [RegisteredApp]
}

/// One CONNECT: checks it, negotiates the session, and answers with CONNACK.
struct ConnectHandshake {
    let connect: MQTTConnect
    let device: DeviceID
    let environment: PushEnvironment
    let limits: CourierLimits

    var version: MQTTVersion { connect.version }

    /// The refusal of a CONNECT that cannot be accepted; nil for every other.
    var refusal: ConnectRefusal? {
        if let place = HostPort(limits.configuration.movedTo, defaultPort: 5223)?.description {
            return ConnectRefusal(
                code: .serverMoved,
                reason: "this service has moved to \(place)",
                serverReference: place
            )
        }
        // [MQTT-4.12.0-1]: no authentication beyond the certificate.
        guard connect.properties.authenticationMethod == nil else {
            return ConnectRefusal(code: .badAuthenticationMethod, reason: "the certificate is all that is asked for")
        }
        guard isRightIdentifier else {
            // [MQTT-3.1.3-5] of 3.1.1 and of MQTT 5 obliges a server to *allow* identifiers of 1 to 23 alphanumeric
            // characters. The one that a client may use is a matter of authorization, and the certificate says it.
            return ConnectRefusal(
                code: .clientIdentifierNotValid,
                reason: "use \(device.name)",
                fault: .wrongClientIdentifier
            )
        }
        if version == .v5, let will = connect.will {
            // Wills are accepted and never published, except those that CONNACK would have announced as unavailable.
            guard will.qualityOfService != .exactlyOnce else {
                return ConnectRefusal(code: .qosNotSupported, reason: "the QoS of a will is 0 or 1")
            }
            guard !will.isRetained else {
                return ConnectRefusal(code: .retainNotSupported, reason: "nothing is retained, and no will")
            }
        }
        return nil
    }

    /// Byte for byte that of the certificate; or empty, where the session is clean ([MQTT-3.1.3-6], [MQTT-3.1.3-8] and
    /// 3.1.1's [MQTT-3.1.3-7]).
    private var isRightIdentifier: Bool {
        let identifier = connect.clientIdentifier
        return identifier.isEmpty ? connect.isClean : identifier.utf8.elementsEqual(device.name.utf8)
    }

    /// Resumes the stored session of an admitted device, or makes a new one.
    func negotiate(_ admitted: AdmittedDevice, now: WallTime) -> NegotiatedSession {
        let stored = admitted.record.session
        let isResumed = !connect.isClean && isAlive(stored, now: now)
        var session = MQTTSession(
            version: version,
            environment: environment,
            expiryInterval: sessionExpiry,
            connectExpiryInterval: connect.properties.sessionExpiryInterval ?? 0,
            subscriptions: isResumed
                ? SessionSubscriptions(
                    record: stored?.subscriptions ?? [:],
                    environments: stored?.environments,
                    apps: admitted.apps
                )
                : SessionSubscriptions(),
            reportsProblems: connect.properties.requestProblemInformation != 0
        )
        // In a new session each token comes with its SUBACK; in a resumed one the key is noted once the tokens arrived.
        session.tokenKey = isResumed ? stored?.tokenKey : admitted.tokenKey
        session.newTokenKey = admitted.tokenKey
        // Kept while the device is connected: if the node dies, the next one knows what the device had before.
        session.broadcasts = isResumed ? stored?.broadcasts : nil
        let tokenGrace = limits.tokenGrace
        if tokenGrace != nil { session.tokens = TokenPresentation() }
        let terms = SessionTerms(
            device: admitted.device,
            fence: admitted.fence,
            isSavingPower: admitted.record.isSavingPower,
            window: window,
            maximumPacketSize: connect.properties.maximumPacketSize.map { Int($0) } ?? .max,
            keepAliveTimeout: 1.5 * keepAlive,
            tokenGrace: tokenGrace,
            isResumed: isResumed,
            broadcasts: isResumed ? stored?.broadcasts ?? [:] : [:]
        )
        // A device that resumes its session does not subscribe, and is sent the tokens of a new key here.
        let tokens = isResumed && session.tokenKey != admitted.tokenKey ? admitted.apps : []
        return NegotiatedSession(session: session, terms: terms, tokens: tokens)
    }

    /// Attaches the device, answers, and opens the apps and channels that the session is subscribed to.
    func accept(_ negotiated: NegotiatedSession) -> [ConnectionAction] {
        let (session, terms) = (negotiated.session, negotiated.terms)
        let connack = MQTTConnack(
            isSessionPresent: terms.isResumed,
            properties: version == .v5 ? announcements(session) : []
        )
        var actions: [ConnectionAction] = [.attach(terms), .send(.connack(connack))]
        for app in negotiated.tokens {
            guard let token = app.token, let qualityOfService = session.subscriptions.entry(app.topic)?.tokenQoS else {
                continue
            }
            actions.append(.sendToken(app.number, token, qualityOfService: qualityOfService))
        }
        for entry in session.subscriptions.entries {
            if let qualityOfService = entry.notificationQoS {
                actions.append(.open(entry.number, qualityOfService: qualityOfService))
            }
        }
        if terms.isResumed, let qualityOfService = session.subscriptions.serviceQoS {
            actions.append(.announce(qualityOfService: qualityOfService, after: 0))
        }
        for (name, qualityOfService) in session.subscriptions.channels {
            guard let channel = ChannelFilter(CourierFilter(name)) else { continue }
            let acknowledged = terms.broadcasts[name] ?? 0
            actions.append(.openChannel(channel, qualityOfService: qualityOfService, acknowledged: acknowledged))
        }
        return actions
    }

    /// Whether a stored session can be resumed.
    ///
    /// A session without expiry ended with its connection, however that ended.
    private func isAlive(_ session: SessionRecord?, now: WallTime) -> Bool {
        guard let session, session.environment == environment, session.expiryInterval > 0 else { return false }
        return !session.isExpired(at: now)
    }

    /// Seconds; what the client asks for, or as long as sessions are kept.
    ///
    /// 3.1.1 has only "with the connection" and "for ever" (MQTT 5 §3.1.2.11.2 maps them).
    private var sessionExpiry: UInt32 {
        let longest = UInt32(clamping: limits.longestSession.load(ordering: .relaxed))
        switch version {
        case .v5: return min(connect.properties.sessionExpiryInterval ?? 0, longest)
        case .v311: return connect.isClean ? 0 : longest
        }
    }

    private var window: Int {
        let limits = limits.configuration
        guard version == .v5 else { return limits.windowWithoutReceiveMaximum }
        return min(Int(connect.properties.receiveMaximum ?? .max), limits.largestWindow)
    }

    /// Seconds; the client's own, or the longest that is allowed.
    private var keepAlive: Double {
        let longest = limits.longestKeepAlive.load(ordering: .relaxed)
        let wanted = Int64(connect.keepAlive)
        return Double(wanted == 0 ? longest : min(wanted, longest))
    }

    /// The properties of CONNACK (MQTT 5 §3.2.2.3).
    private func announcements(_ session: MQTTSession) -> MQTTProperties {
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
        let keepAlive = UInt16(clamping: Int64(keepAlive))
        if keepAlive != connect.keepAlive { properties.append(.serverKeepAlive(keepAlive)) }
        return properties
    }
}
