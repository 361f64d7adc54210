import HeraldIdentity
import HeraldJSON
import HeraldMailbox
import HeraldModel
import HeraldTrust

/// The registration of a device token, as JSON.
struct TokenAnswer: Codable, Sendable {
    /// Whether the token opens under a key of this service.
    let opens: Bool
    let device: String?
    let topic: String?
    let environment: PushEnvironment?
    /// Whether a notification for it is accepted.
    let live: Bool
    /// The time since which it is dead.
    let ended: String?
    /// The answer that a provider gets, and why.
    let verdict: String

    init(_ token: DeviceToken, _ contents: TokenContents?, device: DeviceID?, app: App?, registration: Registration?) {
        opens = contents != nil
        self.device = device?.name
        topic = app?.topic.name
        environment = app?.environment
        let isLive = registration.map { $0.isLive && $0.generation == contents?.generation } ?? false
        live = isLive
        ended = isLive ? nil : registration?.ended?.rfc3339
        verdict =
            if contents == nil {
                "BadDeviceToken: no token key of this service opens it; it is of another service, or forged"
            } else if registration == nil {
                "BadDeviceToken: a token key opens it, but its device or app is unknown"
            } else if isLive, let app {
                "valid for \(app.topic) in \(app.environment.rawValue)"
            } else {
                "Unregistered: the app was removed from the device" + (ended.map { " at \($0)" } ?? "")
            }
    }
}

/// The content of a provider token and the answer that it gets, as JSON.
struct ProviderTokenAnswer: Codable, SnakeCased, Sendable {
    /// JSON texts as the token has them; nil if they cannot be decoded.
    let header: String?
    let claims: String?
    let key: String?
    let team: String?
    let issued: String?
    /// Seconds since `iat` by this service's clock; negative if it is ahead.
    let ageSeconds: Int64?
    let lifetime: Int64
    /// Whether the key is registered and not revoked.
    let keyIsKnown: Bool
    let accepted: Bool
    let reason: String?
    let explanation: String?
    /// The topics and environments of the key; no topics are all of the team.
    let topics: [String]?
    let environments: [String]?

    init(
        _ reading: ProviderTokenReading,
        _ verdict: ProviderTokenVerdict,
        _ credentials: CredentialTable,
        now: WallTime
    ) {
        (header, claims, team) = (reading.header, reading.claims, reading.team)
        lifetime = ProviderToken.lifetime.components.seconds
        key = reading.keyID.map { ConsoleCredential.name(of: $0) }
        issued = reading.issued?.rfc3339
        ageSeconds = reading.issued.map { (now - $0).components.seconds }
        let known = reading.keyID.flatMap { credentials.key($0) }
        keyIsKnown = known.map { $0.revoked == nil } ?? false
        topics = known?.topics.map(\.name)
        environments = known?.environments.map(\.rawValue).sorted()
        switch verdict {
        case .valid: (accepted, reason, explanation) = (true, nil, nil)
        case .refused(let refusalReason, let why): (accepted, reason, explanation) = (false, refusalReason.reason, why)
        case .unknownKey(let why):
            (accepted, reason, explanation) = (false, RefusalReason.invalidProviderToken.reason, why)
        }
    }
}
