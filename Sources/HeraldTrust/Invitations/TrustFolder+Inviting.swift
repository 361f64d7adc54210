package import HeraldModel
import X509

extension TrustFolder {
    /// The most invitations that are open at one time.
    package static let maximumInvitations = 10_000

    /// Makes codes for new devices; what is kept of each is a hash.
    /// - Parameters:
    ///   - name: What people will call the devices; nil if whoever uses a code says.
    ///   - lifetime: How long the codes are good.
    ///   - count: How many; at least one.
    ///   - now: When they begin.
    /// - Returns: The codes, with what is on record of them.
    /// - Throws: ``TrustError/Code/invalidArgument``, ``TrustError/Code/tooMany``, ``TrustError/Code/noSigningKey``, or what
    ///   is wrong with the folder.
    package func invite(
        name: String?,
        lifetime: Duration,
        count: Int = 1,
        now: WallTime
    ) throws -> [IssuedInvitation] {
        if let name { try TrustFolder.check(name: name) }
        guard deviceAuthority.canSign else {
            throw TrustError(
                .noSigningKey,
                "the key of the device authority is not here: make certificates where it is kept"
            )
        }
        guard let authority = try publicAuthorities().first else {
            throw TrustError(.damaged, "\(layout.authority) holds no certificate")
        }
        return try TrustLock.with(layout) {
            let present = try ledger.read().invitations
            guard present.count(where: { $0.state(at: now) == .open }) + count <= TrustFolder.maximumInvitations else {
                throw TrustError(
                    .tooMany,
                    "at most \(TrustFolder.maximumInvitations) invitations are open at one time: withdraw some"
                )
            }
            var taken = Set(present.map(\.id))
            let issued = (0..<count).map { _ in
                let code = InvitationCode(authority: authority)
                var id = TrustFolder.randomName(8)
                while !taken.insert(id).inserted { id = TrustFolder.randomName(8) }
                let invitation = Invitation(
                    id: id,
                    name: name,
                    digest: code.digest,
                    created: now,
                    expires: now + lifetime
                )
                return IssuedInvitation(invitation: invitation, code: code)
            }
            try ledger.append(issued.map { .invitation($0.invitation) })
            return issued
        }
    }

    /// Every invitation, the oldest first.
    package func invitations() throws -> [Invitation] {
        try ledger.read().invitations
    }

    /// Ends an invitation that was not used.
    /// - Throws: ``TrustError/Code/unknownID``, or ``TrustError/Code/alreadyRevoked`` for one that is over.
    package func withdrawInvitation(_ id: String, now: WallTime) throws -> Invitation {
        try TrustLock.with(layout) {
            guard var invitation = try invitations().first(where: { $0.id == id }) else {
                throw TrustError(
                    .unknownID,
                    "there is no invitation \(id.debugDescription): `herald device invite --list` shows them"
                )
            }
            if let use = invitation.used {
                throw TrustError(
                    .alreadyRevoked,
                    "the invitation was used by device \(use.device): end that with `herald device revoke`"
                )
            }
            if let since = invitation.withdrawn {
                throw TrustError(.alreadyRevoked, "\(id) was withdrawn at \(since.rfc3339)")
            }
            invitation.withdrawn = now
            try ledger.append(.invitationWithdrawn(id: id, at: now))
            return invitation
        }
    }

    /// The certificates (DER) by which everybody knows the service; the first is the one that invitations name.
    package func publicAuthorities() throws -> [[UInt8]] {
        let bundle = try PEMBundle(pem: try TrustFile.read(layout.authority, .open), path: layout.authority)
        return bundle.certificates.map(PEMBundle.der)
    }
}
