import HeraldModel
import HeraldTrust

/// What one connection of a provider has shown of itself, and what follows from it.
///
/// A value that stays with its connection. It remembers what it found out (the tokens shown last, the topics asked for
/// last), so that a request like the one before costs some comparisons. What it remembers is found out anew when the
/// keys change, and once a second.
struct ProviderStanding {
    /// A topic that was asked for, and what came of it.
    struct Grant {
        let app: App
        /// The app's number; nil as long as no device has registered it.
        let number: AppNumber?
        /// What the topic is for, by its ending.
        let kind: PushType
        let mayPush: Bool
    }

    private struct Known {
        let topic: [UInt8]
        let grant: Grant
    }

    private struct Accepted {
        let token: [UInt8]
        var identity: ProviderTokenIdentity
        var isFresh: Bool
    }

    private struct Refused {
        let token: [UInt8]
        let refusal: Refusal
        var isFresh: Bool
    }

    /// How many topics are remembered; more than most providers have on one connection.
    private static let knownTopics = 16

    /// Who the connection's certificate names; nil for a connection by token.
    private(set) var certificate: ProviderCertificateIdentity?
    /// How many tokens were refused that had not been refused just before; some cost a check of a signature.
    private(set) var refusedTokens = 0
    private var binding = ProviderTokenBinding()
    private var accepted: Accepted?
    private var refused: Refused?
    private var known: [Known] = []
    private var oldestKnown = 0
    private var generation: UInt64 = 0
    private var second: Int64 = .min

    init(certificate: ProviderCertificateIdentity?) {
        self.certificate = certificate
    }

    /// Whether the connection has shown who it is: by certificate, or by a valid token.
    var isKnown: Bool { certificate != nil || binding.isBound }

    /// Forgets what may have changed; once in each burst of requests.
    mutating func refresh(_ admission: Admission, now: WallTime) {
        let generation = admission.tokens.generation
        guard generation != self.generation || now.seconds != second else { return }
        self.generation = generation
        second = now.seconds
        accepted?.isFresh = false
        refused?.isFresh = false
        forgetTopics()
    }

    /// Decides who asks; the topic is another question.
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
        let judged = fields.withValue(of: .authorization) { value -> Refusal? in
            guard let token = BearerScheme.token(in: value) else { return Self.missingToken }
            guard !fields.isMalformed(.authorization) else {
                return Refusal(.invalidProviderToken, "authorization has characters that no token has")
            }
            return judge(token, environment, admission, now)
        }
        return judged ?? Self.missingToken
    }

    /// What the provider may send to: the topic that the request names, or the only one of its certificate.
    ///
    /// `declared` is what the request says that it is.
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
            guard let named else {
                return .failure(
                    Refusal(.badTopic, "apns-topic is a bundle identifier, with the suffix of the push type")
                )
            }
            granted = named
        } else if let topic = certificate?.defaultTopic {
            var name = topic.name
            guard let found = name.withUTF8({ grant(UnsafeRawBufferPointer($0), environment, admission) }) else {
                return .failure(Refusal(.badTopic, "the certificate's topic is none"))
            }
            granted = found
        } else {
            return .failure(
                Refusal(
                    .missingTopic,
                    certificate == nil
                        ? "apns-topic is required with a provider token"
                        : "apns-topic is required: the certificate has several topics"
                )
            )
        }
        if let refusal = check(granted, declared) { return .failure(refusal) }
        return .success(granted)
    }

    /// Whether the provider may broadcast for an app, and make channels for it.
    mutating func checkBundle(
        _ bundle: Topic,
        _ environment: PushEnvironment,
        _ admission: Admission
    ) -> Refusal? {
        let kind = TopicKind.kind(of: bundle)
        guard kind.topicSuffix.isEmpty else {
            return Refusal(.topicDisallowed, "the path has the bundle identifier alone, without \(kind.topicSuffix)")
        }
        var name = bundle.name
        let granted = name.withUTF8 { grant(UnsafeRawBufferPointer($0), environment, admission) }
        guard granted?.mayPush ?? false else {
            return Refusal(
                .topicMismatch,
                certificate == nil
                    ? "the key is not for \(bundle): it is scoped to others, or the app is another team's"
                    : "the certificate does not name \(bundle)"
            )
        }
        return nil
    }

    private static let missingToken = Refusal(
        .missingProviderToken,
        "there is no provider certificate on the connection, and no authorization with the word bearer and a token"
    )

    private mutating func judge(
        _ token: UnsafeRawBufferPointer,
        _ environment: PushEnvironment,
        _ admission: Admission,
        _ now: WallTime
    ) -> Refusal? {
        let isAccepted = accepted.map { token.hasBytes($0.token) } ?? false
        if isAccepted, let accepted, accepted.isFresh { return check(accepted.identity, environment) }
        let isRefused = refused.map { token.hasBytes($0.token) } ?? false
        if isRefused, let refused, refused.isFresh { return refused.refusal }
        switch admission.tokens.verify(token, now: now) {
        case .refused(let rejection, let why):
            let refusal = Refusal(rejection, why)
            if !isRefused { refusedTokens += 1 }
            refused = Refused(token: Array(token), refusal: refusal, isFresh: true)
            return refusal
        case .valid(let identity):
            if let refusal = check(identity, environment) { return refusal }
            if isAccepted {
                if accepted?.identity != identity { forgetTopics() }
                accepted?.identity = identity
                accepted?.isFresh = true
                return nil
            }
            if let refusal = binding.change(to: identity, now: now) {
                refused = Refused(token: Array(token), refusal: refusal, isFresh: true)
                return refusal
            }
            accepted = Accepted(token: Array(token), identity: identity, isFresh: true)
            forgetTopics()
            return nil
        }
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
        for entry in known where entry.grant.app.environment == environment && name.hasBytes(entry.topic) {
            return entry.grant
        }
        guard let topic = Topic(utf8: name) else { return nil }
        let mayPush =
            if let certificate {
                certificate.topics.contains(topic)
            } else if let accepted {
                admission.tokens.mayPush(topic, as: accepted.identity)
            } else {
                false
            }
        let app = App(topic: topic, environment: environment)
        let grant = Grant(
            app: app,
            number: admission.number(of: app),
            kind: TopicKind.kind(of: topic),
            mayPush: mayPush
        )
        remember(Known(topic: Array(name), grant: grant))
        return grant
    }

    private mutating func remember(_ entry: Known) {
        if known.count < Self.knownTopics {
            known.append(entry)
        } else {
            known[oldestKnown] = entry
            oldestKnown = (oldestKnown + 1) % Self.knownTopics
        }
    }

    private mutating func forgetTopics() {
        known.removeAll(keepingCapacity: true)
        oldestKnown = 0
    }

    private func check(_ grant: Grant, _ declared: PushType?) -> Refusal? {
        if let declared, !declared.topicSuffix.isEmpty, grant.kind != declared {
            return Refusal(
                .topicDisallowed,
                "the topic of a \(declared.rawValue) notification ends with \(declared.topicSuffix)"
            )
        }
        guard grant.mayPush else {
            return Refusal(
                .topicDisallowed,
                certificate == nil
                    ? "the key may not send to \(grant.app.topic): it is scoped to others, or the topic is another team's"
                    : "the certificate does not name \(grant.app.topic)"
            )
        }
        let kind = declared ?? grant.kind
        if certificate != nil, kind == .liveactivity || kind == .location {
            return Refusal(.topicDisallowed, "\(kind.rawValue) notifications need a provider token, not a certificate")
        }
        return nil
    }
}
