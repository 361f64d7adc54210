package import HeraldMailbox
package import HeraldModel
package import HeraldTrust

/// The ``DeviceOffice`` of a running service.
package final class ServiceOffice: DeviceOffice {
    private let postOffice: PostOffice
    private let registry: Registry
    private let channels: ChannelOffice
    private let seal: TokenSeal

    package init(postOffice: PostOffice, registry: Registry, channels: ChannelOffice, seal: TokenSeal) {
        self.postOffice = postOffice
        self.registry = registry
        self.channels = channels
        self.seal = seal
    }

    package func arrive(_ id: DeviceID) async throws -> Registry.Arrival {
        try await registry.arrive(id)
    }

    package func isKnown(_ id: DeviceID) -> Bool {
        registry.number(of: id) != nil
    }

    package func arriveAgain(
        _ id: DeviceID,
        _ done: @escaping @Sendable (Result<Registry.Arrival, any Error>) -> Void
    ) {
        registry.arriveAgain(id, done)
    }

    package func register(_ apps: [App], on device: DeviceNumber) async -> [App: Result<Registration, any Error>] {
        await registry.register(apps, on: device)
    }

    package func unregister(_ slots: Set<Slot>) async -> [Slot: Result<Bool, any Error>] {
        await registry.unregister(slots)
    }

    package func setEnabled(_ enabled: Bool, for slot: Slot) async throws {
        try await registry.setEnabled(enabled, for: slot)
    }

    package func setSavingPower(_ saving: Bool, for device: DeviceNumber) async throws {
        try await registry.setSavingPower(saving, for: device)
    }

    package func setSession(
        _ session: SessionRecord?,
        for device: DeviceNumber,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        registry.setSession(session, for: device, done)
    }

    package func app(_ number: AppNumber) -> App? {
        registry.app(number)
    }

    package func number(of app: App) -> AppNumber? {
        registry.number(of: app)
    }

    package func registration(_ slot: Slot) -> Registration? {
        postOffice.registration(slot)
    }

    package func token(for registration: Registration) -> DeviceToken {
        seal.seal(TokenContents(slot: registration.slot, generation: registration.generation))
    }

    package var tokenKey: UInt32 { seal.newestKey }

    package func open(_ token: DeviceToken) -> TokenContents? {
        seal.open(token)
    }

    package func feed(_ channel: ChannelID, of app: App) -> ChannelFeed? {
        channels.feed(channel, of: app)
    }

    package func newest(_ channel: ChannelID, of app: App) -> Broadcast? {
        channels.newest(channel, of: app)
    }

    package func attach(_ device: DeviceNumber, link: any DeviceLink, isSavingPower: Bool, fence: UInt64) {
        postOffice.attach(device, link: link, isSavingPower: isSavingPower, fence: fence)
    }

    package func detach(_ device: DeviceNumber, fence: UInt64) {
        postOffice.detach(device, fence: fence)
    }

    package func open(_ apps: [WantedApp], on device: DeviceNumber, fence: UInt64) {
        postOffice.open(apps, on: device, fence: fence)
    }

    package func close(_ slot: Slot, fence: UInt64) {
        postOffice.close(slot, fence: fence)
    }

    package func finished(_ slot: Slot, fence: UInt64, delivery: DeliveryNumber, result: DeliveryResult) {
        postOffice.finished(slot, fence: fence, delivery: delivery, result: result)
    }

    package func setSavingPower(_ saving: Bool, device: DeviceNumber, fence: UInt64) {
        postOffice.setSavingPower(saving, device: device, fence: fence)
    }
}
