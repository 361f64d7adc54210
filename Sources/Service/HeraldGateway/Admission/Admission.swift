package import HeraldMailbox
package import HeraldModel
package import HeraldTrust
import Logging

/// Lookup of known apps and their numbers.
package protocol AppDirectory: Sendable {
    func app(_ number: AppNumber) -> App?
    /// The number of an app, if a device ever registered it or it had a channel.
    func number(of app: App) -> AppNumber?
    func isRegistered(_ app: App) -> Bool
    /// The team that brought an app's name by creating its first channel; nil if a device or a certificate did.
    func team(thatBrought app: App) -> String?
}

/// Identifies providers by certificate or provider token, and opens device tokens.
///
/// All provider listeners use it. It knows no protocol; ``ProviderAuthorization`` keeps the state of one connection.
package struct Admission: Sendable {
    /// The result of opening a device token.
    package enum Address: Sendable {
        /// The slot, and the registration's generation for which the token was made.
        case slot(TokenContents)
        case refused(Refusal)
    }

    private let trust: TrustService
    private let apps: any AppDirectory
    private let senders: SenderNames

    package init(trust: TrustService, apps: any AppDirectory, senders: SenderNames = SenderNames()) {
        self.trust = trust
        self.apps = apps
        self.senders = senders
    }

    /// Verifies provider tokens.
    var tokens: ProviderTokenVerifier { trust.providerTokens }

    /// Decides which team owns a topic that no team owned before.
    var firstUses: FirstUses { trust.firstUses }

    /// Claims the topics of first uses until the task is cancelled.
    func claimFirstUses(clock: any WallClock, logger: Logger) async {
        await trust.claimFirstUses(clock: clock) { event in
            switch event {
            case .claimed(let use):
                logger.notice("topic claimed: the team was the first to use it", metadata: Self.metadata(use))
            case .lost(let use, let owner):
                let metadata = Self.metadata(use).merging(["owner": "\(owner ?? "none")"]) { $1 }
                logger.notice("topic not claimed: another process was faster", metadata: metadata)
            case .failed(let use, let error):
                let metadata = Self.metadata(use).merging(["error": "\(error)"]) { $1 }
                logger.error(
                    "topic not claimed: requests for it are answered 503, and the next one tries again",
                    metadata: metadata
                )
            case .overLimit(let use):
                logger.warning(
                    """
                    topic not claimed: the team owns \(TopicClaims.maximumUses) topics by use, as many as it may; other \
                    teams may use its further topics, too, until `herald app claim`
                    """,
                    metadata: Self.metadata(use)
                )
            }
        }
    }

    private static func metadata(_ use: TopicUse) -> Logger.Metadata {
        ["topic": "\(use.topic)", "team": "\(use.team)"]
    }

    /// Identifies the provider of a certificate, or explains why the certificate is not valid.
    package func identify(certificate: [UInt8], at now: WallTime) -> Result<ProviderCertificateIdentity, PeerRefusal> {
        trust.peers.provider(certificate: certificate, at: now)
    }

    /// Explains why TLS refused a certificate (DER).
    func fault(of certificate: [UInt8], at now: WallTime) -> PeerRefusal {
        trust.peers.fault(of: .provider, certificate: certificate, at: now)
    }

    /// Whether the certificate of an open connection is still valid.
    package func isValid(_ identity: ProviderCertificateIdentity, at now: WallTime) -> Bool {
        now <= identity.expires && !trust.isRevoked(serial: identity.serial, of: .provider)
    }

    /// The number of a certificate's credential, by its identifier; a certificate that Herald did not issue has none.
    func sender(of certificate: ProviderCertificateIdentity) -> SenderNumber {
        let id = trust.providerTokens.credentials.claims.credentials[certificate.serial]
        return senders.number(of: id ?? "certificate \(certificate.serial)")
    }

    /// The number of a key for provider tokens.
    func sender(ofKey id: String) -> SenderNumber {
        senders.number(of: id)
    }

    /// Counts requests of a credential.
    func count(_ sender: SenderNumber, accepted: Int = 0, refused: Int = 0, at now: WallTime) {
        senders.use.count(sender, accepted: accepted, refused: refused, at: now)
    }

    /// The device and app of a device token, whether or not a provider may use it.
    func slot(of token: DeviceToken) -> Slot? {
        trust.seal.open(token)?.slot
    }

    /// Opens a device token for an app.
    ///
    /// It checks in the order of APNs: issued by this service for this environment, then for this app. The post office
    /// checks whether the registration still exists.
    ///
    /// `token` is nil if the request has no well-formed one, and `number` if the app's number is not known yet.
    package func open(_ token: DeviceToken?, for app: App, number: AppNumber?) -> Address {
        guard let token else {
            return .refused(Refusal(.badDeviceToken, "a device token of this service is 64 hexadecimal digits"))
        }
        guard let contents = trust.seal.open(token) else {
            let why = "this service did not issue the device token, or it has retired the token's key"
            return .refused(Refusal(.badDeviceToken, why, restsOn: .trust))
        }
        if let number, contents.slot.app == number { return .slot(contents) }
        guard let actual = apps.app(contents.slot.app) else {
            let why = "the device token belongs to an app that this service does not know"
            return .refused(Refusal(.badDeviceToken, why, restsOn: .apps))
        }
        guard actual.environment == app.environment else {
            return .refused(
                Refusal(
                    .badDeviceToken,
                    actual.environment == .sandbox
                        ? "the device token belongs to the sandbox environment, and this connection to production"
                        : "the device token belongs to the production environment, and this connection to sandbox"
                )
            )
        }
        guard actual.topic == app.topic else {
            return .refused(Refusal(.deviceTokenNotForTopic, "the device token belongs to another topic"))
        }
        return .slot(contents)
    }

    /// The number of an app, if a device ever registered it or it had a channel.
    func number(of app: App) -> AppNumber? {
        apps.number(of: app)
    }

    /// Whether a device has registered an app of a topic.
    func isRegistered(_ topic: Topic) -> Bool {
        PushEnvironment.allCases.contains { apps.isRegistered(App(topic: topic, environment: $0)) }
    }

    /// The team that brought an app's name by creating its first channel.
    func team(thatBrought app: App) -> String? {
        apps.team(thatBrought: app)
    }

    /// All tokens of a registration that providers may have: one per token key that is not retired, newest first.
    func tokens(of contents: TokenContents) -> [DeviceToken] {
        trust.seal.sealings(of: contents)
    }
}
