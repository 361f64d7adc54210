import HeraldConsole
import HeraldModel

/// A service without devices and providers.
protocol NoFleet: FleetAdministration, ChannelAdministration {}

extension NoFleet {
    private var notHere: AdminError { AdminError(.notFound, "not here") }

    private func none<Item>() -> Page<Item> { Page(items: [], next: nil) }

    func channels(of bundle: Topic?, _ page: PageRequest) async throws -> Page<ChannelEntry> { none() }
    func channel(_ id: ChannelID) async throws -> ChannelEntry { throw notHere }
    func makeChannel(of app: App, storage: MessageStoragePolicy) async throws -> ChannelEntry { throw notHere }
    func deleteChannel(_ id: ChannelID) async throws -> ChannelEntry { throw notHere }
    func apps(of topic: Topic?, onlyUnused: Bool, _ page: PageRequest) async throws -> Page<AppEntry> { none() }
    func devices(_ query: DeviceQuery) async throws -> Page<DeviceEntry> { none() }
    func device(_ id: String) async throws -> DeviceEntry { throw notHere }
    func setLabels(_ labels: [String: String], of id: String) async throws -> DeviceEntry { throw notHere }
    func revokeDevice(_ id: String) async throws -> DeviceEntry { throw notHere }
    func disconnectDevice(_ id: String) async throws -> DeviceEntry { throw notHere }
    func token(of topic: Topic, in environment: PushEnvironment?, on id: String) async throws -> DeviceTokenEntry {
        throw notHere
    }
    func invitations(_ page: PageRequest) async throws -> Page<InvitationEntry> { none() }
    func invite(_ request: InvitationRequest) async throws -> InvitationEntry { throw notHere }
    func withdrawInvitation(_ id: String) async throws -> InvitationEntry { throw notHere }
    func credentials(_ page: PageRequest) async throws -> Page<CredentialEntry> { none() }
    func credential(_ id: String) async throws -> CredentialEntry { throw notHere }
    func issueCertificate(_ request: CertificateOrder) async throws -> IssuedCertificateEntry { throw notHere }
    func addKey(_ request: KeyOrder) async throws -> CredentialEntry { throw notHere }
    func revokeCredential(_ id: String) async throws -> CredentialEntry { throw notHere }
}
