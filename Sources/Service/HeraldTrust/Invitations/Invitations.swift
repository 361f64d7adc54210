package import HeraldIdentity
package import HeraldModel

/// Makes, lists and withdraws invitations for new devices.
package struct Invitations: Sendable {
    /// The most open invitations.
    package static let maximumOpen = 10_000

    let folder: TrustFolder

    /// Invitations after an identifier, by identifier.
    package func page(after id: String?, limit: Int) async throws -> LedgerPage<Invitation> {
        LedgerPage(try await folder.store.invitations(after: id, limit: limit + 1), limit: limit, id: \.id)
    }

    /// The invitation of a code; nil if the service has not issued it.
    package func find(_ code: InvitationCode) async throws -> Invitation? {
        let digest = code.digest
        func known() async throws -> Invitation? {
            Invitation.find(digest, in: try await folder.store.invitations(lookupKey: Invitation.lookupKey(digest)))
        }
        var found = try await known()
        if found == nil, let others = folder.invitationUses {
            // Another node may have made it just now.
            try await others.catchUp()
            found = try await known()
        }
        guard var invitation = found else { return nil }
        if let uses = folder.invitationUses {
            let abandoned = invitation.recent.count { uses.isAbandoned($0) }
            invitation.taken -= abandoned
        }
        return invitation
    }

    /// Makes invitations; the service keeps a hash of each code.
    ///
    /// Without `name`, a device's name is taken from its request. There is at least one code, and each is for `uses`
    /// devices. With `device`, the only code is for that known device: it gets a further certificate, and keeps
    /// everything else.
    /// - Throws: ``TrustError/Code/invalidArgument``, ``TrustError/Code/unknownID`` or
    ///   ``TrustError/Code/alreadyRevoked`` of the device, ``TrustError/Code/tooMany``,
    ///   ``TrustError/Code/noSigningKey``, or a problem of the folder.
    package func make(
        name: String?,
        lifetime: Duration,
        count: Int = 1,
        uses: Int = 1,
        labels: [String: String] = [:],
        for device: String? = nil,
        now: WallTime
    ) async throws -> [IssuedInvitation] {
        if let name { try DeviceCertificates.check(name: name) }
        try DeviceLabels.check(labels)
        let device = try await known(device, isAlone: name == nil && count == 1 && uses == 1 && labels.isEmpty)
        guard (1...Invitation.maximumUses).contains(uses) else {
            throw TrustError(.invalidArgument, "an invitation has 1 to \(Invitation.maximumUses) uses")
        }
        guard folder.deviceAuthority.canSign else {
            throw TrustError(
                .noSigningKey,
                "the key of the device authority is not in this folder: issue certificates where the key is"
            )
        }
        let authorities = try folder.publicAuthorities()
        guard let authority = try folder.serverCertificate().authority(among: authorities) else {
            throw TrustError(
                .invalidArgument,
                "no certificate of \(folder.layout.authority) has signed \(folder.layout.server), so devices could not trust "
                    + "the service: add its authority to that file"
            )
        }
        while true {
            let issued = (0..<count).map { _ in
                let code = InvitationCode(authority: authority)
                var invitation = Invitation(
                    id: DeviceCertificates.randomName(8),
                    name: name,
                    digest: code.digest,
                    created: now,
                    expires: now + lifetime,
                    uses: uses
                )
                (invitation.device, invitation.labels) = (device, labels)
                return IssuedInvitation(invitation: invitation, code: code)
            }
            switch try await folder.store.add(issued.map(\.invitation), limit: Invitations.maximumOpen, now: now) {
            case .added: return issued
            case .identifierTaken: continue
            case .tooMany:
                throw TrustError(
                    .tooMany,
                    "at most \(Invitations.maximumOpen) invitations can be open: withdraw some"
                )
            }
        }
    }

    /// The open invitation that got its use back when a device was revoked; nil if none did.
    package func reopened(by device: EnrolledDevice, now: WallTime) async throws -> Invitation? {
        guard device.seen == nil, let id = device.invitation, let invitation = try await folder.store.invitation(id),
            invitation.state(at: now) == .open
        else { return nil }
        return invitation
    }

    /// The device of an invitation for a known one.
    private func known(_ id: String?, isAlone: Bool) async throws -> DeviceID? {
        guard let id else { return nil }
        guard isAlone else {
            throw TrustError(
                .invalidArgument,
                "an invitation for a known device has one use, and the device keeps its name and labels: leave them out"
            )
        }
        let device = try await folder.devices.device(id)
        guard device.revoked == nil else {
            throw TrustError(.alreadyRevoked, "\(id) is revoked, which is for good: invite it as a new device")
        }
        return device.id
    }

    /// Ends an invitation; devices that have used it stay.
    /// - Throws: ``TrustError/Code/unknownID``, or ``TrustError/Code/alreadyRevoked`` if it was used up or withdrawn.
    package func withdraw(_ id: String, now: WallTime) async throws -> Invitation {
        let unknown = TrustError(
            .unknownID,
            "no invitation is named \(id.debugDescription): `herald device invitations` lists them"
        )
        // Before the attempt: an invitation of another node that comes after it would look withdrawn.
        guard try await folder.store.invitation(id) != nil else { throw unknown }
        let isWithdrawn = try await folder.store.withdrawInvitation(id, at: now)
        guard let invitation = try await folder.store.invitation(id) else { throw unknown }
        if isWithdrawn { return invitation }
        if invitation.isUsedUp {
            let device = invitation.newestDevice.map { "device \($0)" } ?? "a device"
            let who = invitation.uses == 1 ? "\(device) has" : "\(invitation.uses) devices have"
            throw TrustError(
                .alreadyRevoked,
                "\(who) used the invitation: revoke what should not connect with `herald device revoke`"
            )
        }
        throw TrustError(
            .alreadyRevoked,
            "\(id) was withdrawn at \(invitation.withdrawn?.rfc3339 ?? "an earlier time")"
        )
    }
}
