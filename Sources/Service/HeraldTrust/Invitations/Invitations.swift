import HeraldIdentity
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

    func find(_ code: InvitationCode) async throws -> Invitation? {
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
            let abandoned = invitation.recent.count { uses.isAbandoned($0.device) }
            invitation.taken -= abandoned
        }
        return invitation
    }

    /// Makes invitations; the service keeps a hash of each code.
    /// - Parameters:
    ///   - name: The name of the devices; nil to take it from each device's request.
    ///   - lifetime: The lifetime of the codes.
    ///   - count: The number of codes, at least one.
    ///   - uses: The number of devices that may use each code.
    ///   - now: Start of the codes' validity.
    /// - Returns: The invitations with their codes.
    /// - Throws: ``TrustError/Code/invalidArgument``, ``TrustError/Code/tooMany``, ``TrustError/Code/noSigningKey``, or a
    ///   problem of the folder.
    package func make(
        name: String?,
        lifetime: Duration,
        count: Int = 1,
        uses: Int = 1,
        now: WallTime
    ) async throws -> [IssuedInvitation] {
        if let name { try DeviceCertificates.check(name: name) }
        guard (1...Invitation.maximumUses).contains(uses) else {
            throw TrustError(.invalidArgument, "an invitation has 1 to \(Invitation.maximumUses) uses")
        }
        guard folder.deviceAuthority.canSign else {
            throw TrustError(
                .noSigningKey,
                "the key of the device authority is not in this folder: issue certificates where the key is"
            )
        }
        guard let authority = try folder.publicAuthorities().first else {
            throw TrustError(.damaged, "\(folder.layout.authority) holds no certificate")
        }
        while true {
            let issued = (0..<count).map { _ in
                let code = InvitationCode(authority: authority)
                let invitation = Invitation(
                    id: DeviceCertificates.randomName(8),
                    name: name,
                    digest: code.digest,
                    created: now,
                    expires: now + lifetime,
                    uses: uses
                )
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
        if invitation.taken >= invitation.uses {
            let device = invitation.used.map { "device \($0.device)" } ?? "a device"
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
