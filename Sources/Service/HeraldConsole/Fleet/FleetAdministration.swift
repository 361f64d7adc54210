package import HeraldModel

/// Operations on devices, invitations, credentials and apps.
///
/// They throw ``AdminError`` for errors that the operator can correct.
package protocol FleetAdministration: Sendable {
    /// The names of apps, by topic, of one topic or of all, only unused ones if that is asked for; and the topics that teams
    /// own and no app has yet.
    func apps(of topic: Topic?, onlyUnused: Bool, _ page: PageRequest) async throws -> Page<AppEntry>

    // MARK: - Devices

    func devices(_ query: DeviceQuery) async throws -> Page<DeviceEntry>

    /// A device with its apps and its connection.
    func device(_ id: String) async throws -> DeviceEntry

    /// Replaces a device's labels.
    func setLabels(_ labels: [String: String], of id: String) async throws -> DeviceEntry

    /// Revokes a device's certificate, and closes its connection.
    ///
    /// If it could not be applied, the error says so, and a repetition gets it as well until the revocation is in force.
    func revokeDevice(_ id: String) async throws -> DeviceEntry

    /// Closes a device's connection; the device may connect again.
    func disconnectDevice(_ id: String) async throws -> DeviceEntry

    /// Seals the token of an app on a device again.
    func token(of topic: Topic, in environment: PushEnvironment?, on id: String) async throws -> DeviceTokenEntry

    // MARK: - Invitations

    func invitations(_ page: PageRequest) async throws -> Page<InvitationEntry>

    func invite(_ request: InvitationRequest) async throws -> InvitationEntry

    func withdrawInvitation(_ id: String) async throws -> InvitationEntry

    // MARK: - Credentials of providers

    func credentials(_ page: PageRequest) async throws -> Page<CredentialEntry>

    func credential(_ id: String) async throws -> CredentialEntry

    /// Issues a certificate for a request.
    func issueCertificate(_ request: CertificateOrder) async throws -> IssuedCertificateEntry

    /// Takes the public half of a provider's key.
    func addKey(_ request: KeyOrder) async throws -> CredentialEntry

    /// Revokes a credential, and applies it to open connections. Errors are those of ``revokeDevice(_:)``.
    func revokeCredential(_ id: String) async throws -> CredentialEntry
}
