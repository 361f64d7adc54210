package import HeraldModel
import Synchronization

/// The invitations that a running service knows, from any thread.
///
/// What it says of a code is a first look, which costs no disk: who is let in, the ledger decides
/// (``TrustFolder/activateDevice(code:name:request:now:lifetime:)``).
package final class InvitationBook: Sendable {
    /// How many are remembered, the newest first: some 200 bytes each.
    package static let capacity = 2 * TrustFolder.maximumInvitations

    private let invitations: Mutex<[Invitation]>

    init(_ invitations: [Invitation] = []) {
        self.invitations = Mutex(Array(invitations.suffix(Self.capacity)))
    }

    func replace(_ invitations: [Invitation]) {
        let newest = Array(invitations.suffix(Self.capacity))
        self.invitations.withLock { $0 = newest }
    }

    /// What a code is; nil if it was never given out, or so long ago that it is forgotten.
    package func state(of code: InvitationCode, at now: WallTime) -> Invitation.State? {
        let digest = code.digest
        // Of the array itself no more than a reference is taken under the lock.
        let invitations = invitations.withLock { $0 }
        return Invitation.find(digest, in: invitations)?.state(at: now)
    }
}

extension Invitation {
    /// Looks at all of them, and at all of each, so that the time it takes tells nothing.
    static func find(_ digest: [UInt8], in invitations: [Invitation]) -> Invitation? {
        var found: Int?
        for (place, invitation) in invitations.enumerated() {
            guard invitation.digest.count == digest.count else { continue }
            var difference: UInt8 = 0
            for index in digest.indices { difference |= digest[index] ^ invitation.digest[index] }
            if difference == 0 { found = place }
        }
        return found.map { invitations[$0] }
    }
}
