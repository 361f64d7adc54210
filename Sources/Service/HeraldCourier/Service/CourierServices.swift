package import HeraldMailbox
package import HeraldModel
package import HeraldTrust

/// The parts of the service that the courier calls.
package struct CourierServices: Sendable {
    let registry: any DeviceRegistry
    let postOffice: any DevicePostOffice
    let channels: ChannelService
    let tokens: any DeviceTokens
    let trust: any ServiceFacts

    package init(
        registry: any DeviceRegistry,
        postOffice: any DevicePostOffice,
        channels: ChannelService,
        tokens: any DeviceTokens,
        trust: any ServiceFacts
    ) {
        self.registry = registry
        self.postOffice = postOffice
        self.channels = channels
        self.tokens = tokens
        self.trust = trust
    }

    /// The device token of a registration under the newest key; nil if the registration is not live.
    func token(for slot: Slot) -> DeviceToken? {
        guard let registration = postOffice.registration(slot), registration.isLive else { return nil }
        return tokens.token(for: registration)
    }
}

/// The registry, as devices use it.
///
/// Every change is durable when the call returns or calls back. A method that takes `done` never waits, and calls it once,
/// from any thread.
package protocol DeviceRegistry: AnyObject, Sendable {
    /// The state that other nodes change too; nil for a service of one node.
    var shared: (any SharedState)? { get }
    func number(of device: DeviceID) -> DeviceNumber?
    /// Whether a device is connected to another node of the cluster.
    func isHeldElsewhere(_ id: DeviceID) -> Bool
    /// Admits a device whose certificate has been checked.
    func arrive(_ id: DeviceID, _ client: @escaping ClientCheck) async throws -> Registry.Arrival
    /// Admits a device that has a number.
    func arriveAgain(
        _ id: DeviceID,
        _ client: @escaping ClientCheck,
        _ done: @escaping @Sendable (Result<Registry.Arrival, any Error>) -> Void
    )
    /// Registers apps, or confirms that they are registered; each fails alone.
    func register(
        _ apps: [App],
        on device: DeviceNumber,
        fence: UInt64
    ) async -> [App: Result<Registration, any Error>]
    /// Removes apps, and returns for each whether it was registered. An app that the store could not remove stays.
    func unregister(_ slots: Set<Slot>, fence: UInt64) async -> [Slot: Result<Bool, any Error>]
    /// Stores whether the user wants the app's notifications.
    func setEnabled(_ enabled: Bool, for slot: Slot, fence: UInt64) async throws
    func setSavingPower(_ saving: Bool, for device: DeviceNumber, fence: UInt64) async throws
    /// Takes a device's session over for a connection that begins, in place of the record of its arrival.
    func beginSession(
        _ session: SessionRecord?,
        replacing read: DeviceRecord,
        of device: DeviceNumber,
        fence: UInt64,
        _ done: @escaping @Sendable (Result<SessionBeginning, any Error>) -> Void
    )
    /// Stores a session, or deletes it with nil.
    func setSession(
        _ session: SessionRecord?,
        for device: DeviceNumber,
        fence: UInt64,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    )
    func app(_ number: AppNumber) -> App?
    func number(of app: App) -> AppNumber?
}

extension Registry: DeviceRegistry {}

/// The post office, as connections of devices use it: from their event loops, and without waiting.
package protocol DevicePostOffice: AnyObject, Sendable {
    /// The reads of mailboxes that are under way.
    var readCount: Int { get }
    func registration(_ slot: Slot) -> Registration?
    func attach(_ device: DeviceNumber, link: any DeviceLink, isSavingPower: Bool, fence: UInt64)
    func detach(_ device: DeviceNumber, fence: UInt64)
    func open(_ apps: [AppSubscription], on device: DeviceNumber, fence: UInt64)
    func close(_ slot: Slot, fence: UInt64, awaitsToken: Bool)
    func finished(_ slot: Slot, fence: UInt64, delivery: DeliveryNumber, result: DeliveryResult)
    func setSavingPower(_ saving: Bool, device: DeviceNumber, fence: UInt64)
}

extension PostOffice: DevicePostOffice {}

/// Seals and opens device tokens.
package protocol DeviceTokens: AnyObject, Sendable {
    /// The number of the key under which tokens are sealed now.
    var newestKey: UInt32 { get }
    func seal(_ contents: TokenContents) -> DeviceToken
    func open(_ token: DeviceToken) -> TokenContents?
}

extension DeviceTokens {
    /// The device token of a registration, under the newest key.
    package func token(for registration: Registration) -> DeviceToken {
        seal(TokenContents(slot: registration.slot, generation: registration.generation))
    }
}

extension TokenSeal: DeviceTokens {}

/// The facts about the service that its trust folder has.
package protocol ServiceFacts: Sendable {
    /// Whether a credential names the topic, or a team owns it.
    func isKnown(_ topic: Topic) -> Bool
    /// The newest announcement to devices; nil before the first.
    var announcement: SignedAnnouncement? { get }
}

extension TrustService: ServiceFacts {}

/// The certificates of devices, DER.
extension TrustService {
    /// Identifies a device after every handshake, a resumed TLS session included.
    /// - Throws: A `PeerRefusal` if the certificate is not a device's or is not accepted; its text is for the log.
    func device(certificate: [UInt8], now: WallTime) throws -> DeviceIdentity {
        try peers.device(certificate: certificate, at: now).get()
    }

    /// Whether the certificate of a connected device is still accepted: neither revoked nor expired.
    func isWelcome(_ identity: DeviceIdentity, now: WallTime) -> Bool {
        now <= identity.expires && !isRevoked(identity)
    }

    /// The fault of a certificate that TLS refused.
    func fault(of certificate: [UInt8], now: WallTime) -> PeerRefusal {
        peers.fault(of: .device, certificate: certificate, at: now)
    }
}
