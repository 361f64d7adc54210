package import HeraldModel
package import HeraldTrust

/// Who is registered, as a door needs to know it.
package protocol AppDirectory: Sendable {
    /// The app of a number that the service handed out.
    func app(_ number: AppNumber) -> App?
    /// The number of an app, if any device ever registered it.
    func number(of app: App) -> AppNumber?
}

/// Lets providers in: says who they are, what they may send to, and what the device token in their hands opens to.
///
/// Every provider door goes through it. It knows no protocol: what a connection has shown is in ``ProviderStanding``.
package struct Admission: Sendable {
    /// What a device token comes to.
    package enum Address: Sendable {
        /// The place for a notification, and the generation for which the token was minted.
        case slot(TokenContents)
        case refused(Refusal)
    }

    private let trust: TrustOffice
    private let apps: any AppDirectory

    package init(trust: TrustOffice, apps: any AppDirectory) {
        self.trust = trust
        self.apps = apps
    }

    /// Judges provider tokens.
    var tokens: ProviderTokenVerifier { trust.providerTokens }

    /// Who a certificate names, and whether it is good.
    package func identify(certificate: [UInt8], at now: WallTime) -> Result<ProviderCertificateIdentity, PeerRefusal> {
        trust.peers.provider(certificate: certificate, at: now)
    }

    /// What is wrong with a certificate (DER) that TLS did not take.
    func fault(of certificate: [UInt8], at now: WallTime) -> PeerRefusal {
        trust.peers.fault(of: .provider, certificate: certificate, at: now)
    }

    /// Whether the certificate of an open connection is still good.
    package func isStillGood(_ identity: ProviderCertificateIdentity, at now: WallTime) -> Bool {
        now <= identity.expires && !trust.isRevoked(serial: identity.serial, of: .provider)
    }

    /// Opens a device token for an app, in the order of APNs: not ours (or of the other environment), then not this
    /// app's.
    ///
    /// Whether the registration still stands is the post office's to know.
    ///
    /// - Parameters:
    ///   - token: The token; nil if the request had none of its form.
    ///   - app: What the provider sends to.
    ///   - number: The app's number, where it is known already.
    /// - Returns: The place for the notification, or why there is none.
    package func open(_ token: DeviceToken?, for app: App, number: AppNumber?) -> Address {
        guard let token else {
            return .refused(Refusal(.badDeviceToken, "a device token is 64 hexadecimal digits"))
        }
        guard let contents = trust.seal.open(token) else {
            let why = "the device token was not made by this service, or with a token key that is retired"
            return .refused(Refusal(.badDeviceToken, why))
        }
        if let number, contents.slot.app == number { return .slot(contents) }
        guard let actual = apps.app(contents.slot.app) else {
            return .refused(Refusal(.badDeviceToken, "the device token is of an app that this service does not know"))
        }
        guard actual.environment == app.environment else {
            return .refused(
                Refusal(
                    .badDeviceToken,
                    actual.environment == .sandbox
                        ? "the device token is of the sandbox environment; this connection is of production"
                        : "the device token is of the production environment; this connection is of sandbox"
                )
            )
        }
        guard actual.topic == app.topic else {
            return .refused(Refusal(.deviceTokenNotForTopic, "the device token is of another topic"))
        }
        return .slot(contents)
    }

    /// The number of an app, if any device ever registered it.
    func number(of app: App) -> AppNumber? {
        apps.number(of: app)
    }

    /// The tokens that a provider may hold of a registration: one for each key that is not retired, the newest first.
    func tokens(of contents: TokenContents) -> [DeviceToken] {
        trust.seal.sealings(of: contents)
    }
}
