import HeraldConsole
import HeraldModel
import Synchronization

/// One device, one credential, one app.
extension StandInAdministration {
    static let invitation = InvitationEntry(
        id: "i1",
        name: nil,
        state: .open,
        created: "x",
        expires: "y",
        withdrawn: nil,
        uses: 3,
        used: 1,
        lastUsed: nil,
        device: nil
    )

    private func ask(_ question: String) { fleet.withLock { $0.append(question) } }

    private func known(_ id: String) throws -> DeviceEntry {
        guard id == "phone" else { throw AdminError(.notFound, "there is no device \(id)") }
        return Self.device
    }

    func channel(_ id: ChannelID) async throws -> ChannelEntry {
        guard let channel = Self.channels.first(where: { $0.id == id.base64 }) else {
            throw AdminError(.notFound, "there is no channel \(id.base64)")
        }
        return channel
    }

    func makeChannel(of app: App, storage: MessageStoragePolicy) async throws -> ChannelEntry {
        ask("make \(app.topic) \(app.environment.rawValue) \(storage.rawValue)")
        return try await channel(ChannelID(high: 1, low: app.environment == .sandbox ? 1 : 2))
    }

    func deleteChannel(_ id: ChannelID) async throws -> ChannelEntry {
        ask("delete \(id.base64)")
        return try await channel(id)
    }

    /// Channels that can be made and deleted, one in each environment.
    private static let channels = [(UInt64(1), PushEnvironment.sandbox), (2, .production)].compactMap {
        low,
        environment in
        Topic("com.example.app").map { topic in
            ChannelEntry(
                id: ChannelID(high: 1, low: low).base64,
                topic: topic,
                environment: environment,
                policy: 1,
                created: "x",
                subscribers: 0,
                published: 0,
                delivered: 0,
                stored: false
            )
        }
    }

    func channels(of bundle: Topic?, _ page: PageRequest) async throws -> Page<ChannelEntry> {
        Page([Self.channel].compactMap { $0 }.filter { bundle == nil || $0.topic == bundle }, page) { $0.id }
    }

    func apps(of topic: Topic?, onlyUnused: Bool, _ page: PageRequest) async throws -> Page<AppEntry> {
        Page([Self.app].compactMap { $0 }.filter { topic == nil || $0.topic == topic }, page) { $0.topic.name }
    }

    func devices(_ query: DeviceQuery) async throws -> Page<DeviceEntry> {
        ask("devices \(query.page.limit) \(query.text ?? "-") \(query.connected.map { "\($0)" } ?? "-")")
        return Page([Self.device], query.page) { $0.id }
    }

    func device(_ id: String) async throws -> DeviceEntry { try known(id) }

    func setLabels(_ labels: [String: String], of id: String) async throws -> DeviceEntry {
        ask("labels \(labels.sorted { $0.key < $1.key }.map { "\($0)=\($1)" })")
        return try known(id)
    }

    func revokeDevice(_ id: String) async throws -> DeviceEntry {
        struct Broken: Error {}
        throw Broken()
    }

    func disconnectDevice(_ id: String) async throws -> DeviceEntry { try known(id) }

    func token(of topic: Topic, in environment: PushEnvironment?, on id: String) async throws -> DeviceTokenEntry {
        _ = try known(id)
        return DeviceTokenEntry(token: "00", topic: topic, environment: environment ?? .production)
    }

    func invitations(_ page: PageRequest) async throws -> Page<InvitationEntry> {
        Page([Self.invitation], page) { $0.id }
    }

    func invite(_ request: InvitationRequest) async throws -> InvitationEntry {
        ask("invite \(request.uses ?? 1)")
        return Self.invitation
    }

    func withdrawInvitation(_ id: String) async throws -> InvitationEntry {
        guard id == "i1" else { throw AdminError(.notFound, "there is no invitation \(id)") }
        return Self.invitation
    }

    func credentials(_ page: PageRequest) async throws -> Page<CredentialEntry> {
        Page([Self.credential], page) { $0.id }
    }

    func credential(_ id: String) async throws -> CredentialEntry { try await revokeCredential(id) }

    func issueCertificate(_ request: CertificateOrder) async throws -> IssuedCertificateEntry {
        ask("certificate \(request.topics)")
        return IssuedCertificateEntry(credential: Self.credential, certificate: "PEM")
    }

    func addKey(_ request: KeyOrder) async throws -> CredentialEntry {
        ask("key \(request.team)")
        return Self.credential
    }

    func revokeCredential(_ id: String) async throws -> CredentialEntry {
        guard id == "c1" else { throw AdminError(.notFound, "there is no credential \(id)") }
        return Self.credential
    }
}
