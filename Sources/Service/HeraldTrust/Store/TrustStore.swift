package import HeraldModel

/// Stores the ledger: everything issued, every invitation, every revocation, and the teams that own topics.
///
/// A change is one transaction. It happens completely or not at all, and it is durable when the call returns. The conditions
/// of a change are checked in the same transaction, so simultaneous changes cannot contradict each other. Several processes
/// may use one store. All calls throw ``TrustError``; nothing has changed then.
///
/// Revocation lists follow from the store: a revocation is in the store before it is in a list. Provider keys are not in it.
package protocol TrustStore: Sendable {
    // MARK: - Provider certificates

    /// Adds a certificate.
    /// - Returns: false if its identifier is taken.
    func add(_ certificate: Credential) async throws -> Bool

    /// Certificates after an identifier, by identifier.
    func certificates(after id: String?, limit: Int) async throws -> [Credential]

    func certificate(_ id: String) async throws -> Credential?

    /// Revokes a certificate.
    /// - Returns: false if it is unknown or revoked.
    func revokeCertificate(_ id: String, at moment: WallTime) async throws -> Bool

    // MARK: - Topic claims

    /// All topic claims and the topics of certificates; nil if they are those of a version that was read before.
    ///
    /// A new or revoked certificate makes another version, too.
    func topicClaims(after version: Int64?) async throws -> TopicClaims?

    /// Adds claims.
    ///
    /// A topic that another team owns stays with that team, unless `takesOver`. A team gets at most
    /// ``TopicClaims/maximumUses`` claims by use. A claim by use that the team makes again in another way changes its origin.
    func claim(_ claims: [TopicClaim], takesOver: Bool) async throws

    /// Removes the claims of topics; all of them or none.
    /// - Returns: The first topic that no team owns; nil if all are released.
    func release(_ topics: [Topic]) async throws -> Topic?

    // MARK: - Devices

    /// Adds a device with its first certificate, and uses up its invitation, unless its use is decided elsewhere.
    /// - Returns: false if its identifier is taken, or the invitation is unknown, used up or withdrawn.
    func add(_ device: EnrolledDevice, invitation: String?) async throws -> Bool

    /// Adds a certificate to a device that has fewer than `limit` certificates that are valid at `now`.
    ///
    /// `kept` is the certificate in DER, to be kept; nil if nothing is kept any longer. `use` is the use of an
    /// invitation for this device; nil without one, or if it is decided elsewhere.
    /// - Returns: false if it has more, is unknown, or is revoked, or if the invitation is unknown, used up or
    ///   withdrawn.
    func renew(
        _ device: DeviceID,
        with certificate: EnrolledDevice.Certificate,
        kept: [UInt8]?,
        use: (invitation: String, Invitation.Use)?,
        limit: Int,
        now: WallTime
    ) async throws
        -> Bool

    /// Devices by identifier; fewer than the selection's limit, and a next part, after ``DeviceSelection/scan`` devices.
    func devices(_ selection: DeviceSelection) async throws -> LedgerPage<EnrolledDevice>

    func device(_ id: DeviceID) async throws -> EnrolledDevice?

    /// The devices that are not revoked, by whether they have an announcement.
    func announcementCounts(_ version: Int64, now: WallTime) async throws -> AnnouncementCounts

    /// Records that the operator has told devices of an announcement by hand; those that follow announcements are left out.
    /// - Returns: The number of the devices that were told.
    func tell(_ devices: [DeviceID], of version: Int64) async throws -> Int

    /// Revokes a device.
    /// - Returns: false if it is unknown or revoked.
    func revokeDevice(_ id: DeviceID, at moment: WallTime) async throws -> Bool

    /// Changes the labels of a device, in one transaction with reading them.
    /// - Returns: false if it is unknown.
    /// - Throws: A ``TrustError`` of the change, or a problem of the ledger; nothing is changed then.
    func changeLabels(
        of id: DeviceID,
        _ change: @escaping @Sendable (_ labels: inout [String: String]) throws -> Void
    ) async throws -> Bool

    /// Notes connections of devices; those that are not in the ledger are left out.
    ///
    /// The first connection of a device ends its ``EnrolledDevice/kept``.
    func note(_ sightings: [DeviceSighting]) async throws

    // MARK: - Invitations

    /// Adds invitations, unless more than `limit` would be open at `now`.
    func add(_ invitations: [Invitation], limit: Int, now: WallTime) async throws -> AddedInvitations

    /// Invitations after an identifier, by identifier.
    func invitations(after id: String?, limit: Int) async throws -> [Invitation]

    func invitation(_ id: String) async throws -> Invitation?

    /// The invitations whose digest has these first eight bytes (``Invitation/lookupKey(_:)``).
    func invitations(lookupKey: Int64) async throws -> [Invitation]

    /// Withdraws an invitation.
    /// - Returns: false if it is unknown, used up or withdrawn.
    func withdrawInvitation(_ id: String, at moment: WallTime) async throws -> Bool

    // MARK: - Revocations

    /// The serial numbers of all revoked certificates, with the time of their revocation.
    func revokedSerials(of kind: PeerKind) async throws -> [String: WallTime]

    /// The revoked devices, of whose certificates the store may lack some; nil if there are as many as were read before.
    func revokedDevices(after count: Int) async throws -> Set<DeviceID>?
}

/// The outcome of adding invitations.
package enum AddedInvitations: Hashable, Sendable {
    case added
    case identifierTaken
    /// Too many would be open.
    case tooMany
}
