package import HeraldMailbox
package import HeraldModel
package import HeraldTrust

/// What the courier asks of the rest of the service: registry, post office and token seal behind one counter.
package protocol DeviceOffice: AnyObject, Sendable {
    // The registry: every change is durable when the call returns.

    /// Lets in a device whose certificate has been checked.
    /// - Throws: If the store fails.
    func arrive(_ id: DeviceID) async throws -> Registry.Arrival
    /// Whether the device was here before.
    func isKnown(_ id: DeviceID) -> Bool
    /// As ``arrive(_:)``, from an event loop and without waiting, for a device that is known; `done` is called once, from
    /// any thread.
    func arriveAgain(_ id: DeviceID, _ done: @escaping @Sendable (Result<Registry.Arrival, any Error>) -> Void)
    /// Registers apps on a device, or confirms that they are registered; what fails fails alone, with
    /// `RegistrationRefusal` or because of the store.
    func register(_ apps: [App], on device: DeviceNumber) async -> [App: Result<Registration, any Error>]
    /// Removes apps from devices; where the store fails, the registration stands.
    /// - Returns: For each whether a registration stood.
    func unregister(_ slots: Set<Slot>) async -> [Slot: Result<Bool, any Error>]
    /// Keeps whether the user wants the app's notifications.
    /// - Throws: If the store fails.
    func setEnabled(_ enabled: Bool, for slot: Slot) async throws
    /// Keeps whether the device saves power.
    /// - Throws: If the store fails.
    func setSavingPower(_ saving: Bool, for device: DeviceNumber) async throws
    /// Keeps a session, or drops it with nil; from an event loop and without waiting. `done` is called once, from any
    /// thread, when the change is durable, or if the store fails.
    func setSession(
        _ session: SessionRecord?,
        for device: DeviceNumber,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    )
    func app(_ number: AppNumber) -> App?
    func number(of app: App) -> AppNumber?
    func registration(_ slot: Slot) -> Registration?

    // Device tokens.

    func token(for registration: Registration) -> DeviceToken
    /// The number of the key under which tokens are sealed now.
    var tokenKey: UInt32 { get }
    func open(_ token: DeviceToken) -> TokenContents?

    // Broadcast channels; called from event loops, and never waits.

    /// What a device subscribes to; nil if the app has no such channel.
    func feed(_ channel: ChannelID, of app: App) -> ChannelFeed?
    /// The message that a device gets which subscribes now.
    func newest(_ channel: ChannelID, of app: App) -> Broadcast?

    // The post office; called from event loops, and never waits.

    func attach(_ device: DeviceNumber, link: any DeviceLink, isSavingPower: Bool, fence: UInt64)
    func detach(_ device: DeviceNumber, fence: UInt64)
    func open(_ apps: [WantedApp], on device: DeviceNumber, fence: UInt64)
    func close(_ slot: Slot, fence: UInt64)
    func finished(_ slot: Slot, fence: UInt64, delivery: DeliveryNumber, result: DeliveryResult)
    func setSavingPower(_ saving: Bool, device: DeviceNumber, fence: UInt64)
}

/// How the courier tells devices from strangers.
package protocol DeviceTrust: Sendable {
    /// Who shows this certificate, DER. Called after every handshake, resumed sessions included.
    /// - Throws: If the certificate is no device's, or is not accepted (any more); the text is for the log.
    func device(certificate: [UInt8], now: WallTime) throws -> DeviceIdentity
    /// Whether a device that was let in is still welcome: its certificate is neither revoked nor expired.
    func isWelcome(_ identity: DeviceIdentity, now: WallTime) -> Bool
    /// What is wrong with a certificate, DER, that TLS did not take.
    func fault(of certificate: [UInt8], now: WallTime) -> PeerRefusal
}
