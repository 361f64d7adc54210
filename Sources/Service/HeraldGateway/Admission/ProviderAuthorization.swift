import HeraldMailbox
import HeraldModel
import HeraldTrust

/// Authenticates and authorizes the requests of one provider connection.
///
/// A value that belongs to its connection. It caches the last tokens and topics, so a request like the one before costs
/// some comparisons. It checks cached entries again when the keys change, and once a second.
struct ProviderAuthorization {
    /// A topic and the provider's permission for it.
    struct Grant {
        let app: App
        /// The app's number; nil until a device registers it.
        let number: AppNumber?
        /// The push type that the topic's suffix implies.
        let kind: PushType
        let permission: TopicPermission

        /// The use that claims the topic; nil if a team owns it.
        var use: TopicUse? {
            if case .firstUse(let use) = permission { use } else { nil }
        }
    }

    private struct CachedGrant {
        let topic: [UInt8]
        let grant: Grant
    }

    private struct Accepted {
        let token: [UInt8]
        var identity: ProviderTokenIdentity
        let sender: SenderNumber
        var isCurrent: Bool
    }

    private struct Refused {
        let token: [UInt8]
        let refusal: Refusal
        let sender: SenderNumber
        var isCurrent: Bool
    }

    /// Maximum number of cached topics; more than most providers use on one connection.
    private static let maximumGrants = 16

    /// The provider of the connection's certificate; nil for a connection by token.
    private(set) var certificate: ProviderCertificateIdentity?
    /// The credential of the last request; unknown before the first valid one.
    private(set) var sender = SenderNumber.unknown
    /// The number of refused tokens, each different from the one before; each may cost a signature check.
    private(set) var refusedTokens = 0
    private var binding = ProviderTokenBinding()
    private var accepted: Accepted?
    private var refused: Refused?
    private var grants: [CachedGrant] = []
    private var oldestGrant = 0
    private var generation: UInt64 = 0
    private var second: Int64 = .min

    init(certificate: ProviderCertificateIdentity?) {
        self.certificate = certificate
    }

    /// Whether the provider is authenticated, by certificate or by a valid token.
    var isKnown: Bool { certificate != nil || binding.isBound }

    /// The team of the provider token; nil for a connection by certificate.
    var team: String? { binding.team }

    /// The key of the last provider token that was accepted; nil for a connection by certificate.
    var keyID: String? { accepted?.identity.keyID }

    /// Marks cached entries for another check if they may have changed; once per burst of requests.
    mutating func refresh(_ admission: Admission, now: WallTime) {
        let generation = admission.tokens.generation
        guard generation != self.generation || now.seconds != second else { return }
        if let certificate, generation != self.generation || sender == .unknown {
            sender = admission.sender(of: certificate)
        }
        self.generation = generation
        second = now.seconds
        accepted?.isCurrent = false
        refused?.isCurrent = false
        forgetTopics()
    }

    /// Authenticates a request; ``grant(_:_:declared:_:)`` checks its topic.
    mutating func authenticate(
        _ fields: RequestFields,
        _ environment: PushEnvironment,
        _ admission: Admission,
        now: WallTime
    ) -> Refusal? {
        if let certificate {
            return certificate.environments.contains(environment)
                ? nil
                : Refusal(.badCertificateEnvironment, "the certificate is not for \(environment.rawValue)")
        }
        let refusal = fields.withValue(of: .authorization) { value -> Refusal? in
            guard let token = BearerScheme.token(in: value) else { return Self.missingToken }
            guard !fields.isMalformed(.authorization) else {
                return Refusal(.invalidProviderToken, "authorization has characters that a token cannot have")
            }
            return verify(token, environment, admission, now: now)
        }
        return refusal ?? Self.missingToken
    }

    /// Authorizes the topic that the request names, or the only topic of the certificate.
    ///
    /// `declared` is the push type of the request, if it has one.
    mutating func grant(
        _ fields: RequestFields,
        _ environment: PushEnvironment,
        declared: PushType?,
        _ admission: Admission
    ) -> Result<Grant, Refusal> {
        let named = fields.withValue(of: .apnsTopic) { name in
            fields.isMalformed(.apnsTopic) ? nil : grant(name, environment, admission)
        }
        let granted: Grant
        if let named {
            let why = "apns-topic is a bundle identifier, with the suffix of the push type"
            guard let named else { return .failure(Refusal(.badTopic, why)) }
            granted = named
        } else if let topic = certificate?.defaultTopic {
            var name = topic.name
            guard let found = name.withUTF8({ grant(UnsafeRawBufferPointer($0), environment, admission) }) else {
                return .failure(Refusal(.badTopic, "the certificate's topic is not valid"))
            }
            granted = found
        } else {
            let reason = certificate == nil ? "with a provider token" : "because the certificate has several topics"
            return .failure(Refusal(.missingTopic, "apns-topic is required \(reason)"))
        }
        if let refusal = check(granted, declared) { return .failure(refusal) }
        return .success(granted)
    }

    /// Authorizes the provider to broadcast for an app and to manage its channels.
    ///
    /// - Returns: The use that claims the app's topic; nil if a team owns it.
    mutating func checkBundle(
        _ bundle: Topic,
        _ environment: PushEnvironment,
        _ admission: Admission
    ) throws(Refusal) -> TopicUse? {
        let kind = TopicKind.kind(of: bundle)
        guard kind.topicSuffix.isEmpty else {
            throw Refusal(.topicDisallowed, "write the bundle identifier in the path without \(kind.topicSuffix)")
        }
        var name = bundle.name
        let granted = name.withUTF8 { grant(UnsafeRawBufferPointer($0), environment, admission) }
        guard let granted, granted.permission != .refused else { throw Self.foreignBundle(bundle, certificate) }
        return granted.use
    }

    /// The refusal of a request about the channels of another team's app.
    static func foreignBundle(_ bundle: Topic, _ certificate: ProviderCertificateIdentity?) -> Refusal {
        Refusal(
            .topicMismatch,
            certificate == nil
                ? "the key may not send to \(bundle): its scope has other topics, or another team owns the topic"
                : "the certificate does not name \(bundle)",
            restsOn: certificate == nil ? .trust : nil
        )
    }

    /// The refusal of a notification to a topic of another team.
    static func foreignTopic(_ topic: Topic, _ certificate: ProviderCertificateIdentity?) -> Refusal {
        Refusal(
            .topicDisallowed,
            certificate == nil
                ? "the key may not send to \(topic): its scope has other topics, or another team owns the topic"
                : "the certificate does not name \(topic)",
            restsOn: certificate == nil ? .trust : nil
        )
    }

    private static let missingToken = Refusal(
        .missingProviderToken,
        "the request needs a provider certificate on the connection, or the field authorization: bearer <token>"
    )

    private mutating func verify(
        _ token: UnsafeRawBufferPointer,
        _ environment: PushEnvironment,
        _ admission: Admission,
        now: WallTime
    ) -> Refusal? {
        let isAccepted = accepted.map { token.hasBytes($0.token) } ?? false
        if isAccepted, let accepted, accepted.isCurrent {
            sender = accepted.sender
            return check(accepted.identity, environment)
        }
        let isRefused = refused.map { token.hasBytes($0.token) } ?? false
        if isRefused, let refused, refused.isCurrent {
            sender = refused.sender
            return refused.refusal
        }
        sender = accepted?.sender ?? .unknown
        switch admission.tokens.verify(token, now: now) {
        case .refused(let refusalReason, let why):
            let refusal = Refusal(refusalReason, why)
            refuse(token, refusal, isRepeated: isRefused)
            return refusal
        case .unknownKey(let why):
            let refusal = Refusal(.invalidProviderToken, why, restsOn: .trust)
            refuse(token, refusal, isRepeated: isRefused)
            return refusal
        case .valid(let identity):
            if !isAccepted { sender = admission.sender(ofKey: identity.keyID) }
            if let refusal = check(identity, environment) {
                if !isAccepted { refuse(token, refusal, isRepeated: isRefused, isCurrent: false) }
                return refusal
            }
            if isAccepted {
                if accepted?.identity != identity { forgetTopics() }
                accepted?.identity = identity
                accepted?.isCurrent = true
                return nil
            }
            if let refusal = binding.change(to: identity, now: now) {
                refuse(token, refusal, isRepeated: isRefused)
                return refusal
            }
            accepted = Accepted(token: Array(token), identity: identity, sender: sender, isCurrent: true)
            forgetTopics()
            return nil
        }
    }

    /// Counts and remembers a refused token, valid or not; `isCurrent` allows to repeat the refusal without another check.
    private mutating func refuse(
        _ token: UnsafeRawBufferPointer,
        _ refusal: Refusal,
        isRepeated: Bool,
        isCurrent: Bool = true
    ) {
        if !isRepeated { refusedTokens += 1 }
        refused = Refused(token: Array(token), refusal: refusal, sender: sender, isCurrent: isCurrent)
    }

    private func check(_ identity: ProviderTokenIdentity, _ environment: PushEnvironment) -> Refusal? {
        identity.environments.contains(environment)
            ? nil : Refusal(.badEnvironmentKeyInToken, "the key \(identity.keyID) is not for \(environment.rawValue)")
    }

    private mutating func grant(
        _ name: UnsafeRawBufferPointer,
        _ environment: PushEnvironment,
        _ admission: Admission
    ) -> Grant? {
        for entry in grants where entry.grant.app.environment == environment && name.hasBytes(entry.topic) {
            return entry.grant
        }
        guard let topic = Topic(utf8: name) else { return nil }
        let permission: TopicPermission =
            if let certificate {
                admission.tokens.permission(for: topic, team: certificate.team, scope: .topics(certificate.topics))
            } else if let identity = accepted?.identity {
                admission.tokens.permission(for: topic, team: identity.team, scope: identity.topics)
            } else {
                .refused
            }
        let app = App(topic: topic, environment: environment)
        let grant = Grant(
            app: app,
            number: admission.number(of: app),
            kind: TopicKind.kind(of: topic),
            permission: permission
        )
        remember(CachedGrant(topic: Array(name), grant: grant))
        return grant
    }

    private mutating func remember(_ entry: CachedGrant) {
        if grants.count < Self.maximumGrants {
            grants.append(entry)
        } else {
            grants[oldestGrant] = entry
            oldestGrant = (oldestGrant + 1) % Self.maximumGrants
        }
    }

    private mutating func forgetTopics() {
        grants.removeAll(keepingCapacity: true)
        oldestGrant = 0
    }

    private func check(_ grant: Grant, _ declared: PushType?) -> Refusal? {
        if let declared, !declared.topicSuffix.isEmpty, grant.kind != declared {
            return Refusal(
                .topicDisallowed,
                "the topic of a \(declared.rawValue) notification ends with \(declared.topicSuffix)"
            )
        }
        guard grant.permission != .refused else { return Self.foreignTopic(grant.app.topic, certificate) }
        let kind = declared ?? grant.kind
        if certificate != nil, kind == .liveactivity || kind == .location {
            return Refusal(.topicDisallowed, "\(kind.rawValue) notifications need a provider token, not a certificate")
        }
        return nil
    }
}
