import HeraldCluster
import HeraldIdentity
import HeraldModel
import HeraldTrust
import Synchronization

/// Uses up invitations in the cluster's log, so that all nodes together use each as often as it allows.
final class SharedInvitations: InvitationUses {
    private struct Taken: Error {
        let invitation: SharedInvitation
    }

    private let log: TrustLog
    private let sharing: FolderSharing
    private let clock: any WallClock
    private let catchingUp: @Sendable (@escaping LogFollower.Done) -> Void
    /// Uses for which the log gave no answer, and whose devices got no certificate: they may be replaced.
    private let abandoned = Mutex<Set<SharedInvitation.Use>>([])

    /// `catchUp` takes over everything that any node had stored.
    init(
        log: TrustLog,
        sharing: FolderSharing,
        clock: any WallClock,
        catchUp: @escaping @Sendable (@escaping LogFollower.Done) -> Void
    ) {
        catchingUp = catchUp
        self.log = log
        self.sharing = sharing
        self.clock = clock
    }

    func catchUp() async throws {
        do {
            try await withCheckedThrowingContinuation { continuation in
                catchingUp { continuation.resume(with: $0) }
            }
        } catch {
            throw TrustError(.unavailable, "the cluster does not say what other nodes have issued: \(error)")
        }
    }

    func isAbandoned(_ use: Invitation.Use) -> Bool {
        abandoned.withLock { $0.contains(SharedInvitation.Use(device: use.device.name, at: use.at.milliseconds)) }
    }

    func use(_ invitation: Invitation, by device: DeviceID, at moment: WallTime) async throws -> Bool {
        let own = SharedFact.invitation(SharedInvitation(invitation))
        let (use, returned) = (SharedInvitation.Use(device: device.name, at: moment.milliseconds), invitation.returned)
        do {
            let fact = try await log.change(own.key) { [self] inLog in
                let merged = inLog.map { SharedFact.merge(log: $0, own: own) } ?? own
                guard case .invitation(var invitation) = merged else { return merged }
                let isTaken = use.takes(&invitation, of: returned) { one in abandoned.withLock { $0.contains(one) } }
                guard isTaken else { throw Taken(invitation: invitation) }
                return .invitation(invitation)
            }
            let mayReplace = abandoned.withLock { abandoned in
                defer { abandoned.remove(use) }
                return !abandoned.isEmpty
            }
            // The ledger may have the use that this one replaces.
            if mayReplace { _ = try await sharing.take([fact], upTo: nil, now: clock.now()) }
            return true
        } catch let taken as Taken {
            // The ledger then says that it is used up or withdrawn.
            _ = try await sharing.take([.invitation(taken.invitation)], upTo: nil, now: clock.now())
            return false
        } catch {
            _ = abandoned.withLock { $0.insert(use) }
            throw TrustError(.unavailable, "the cluster does not say whether the invitation is still open: \(error)")
        }
    }
}

extension SharedInvitation.Use {
    /// Adds itself to the uses of an invitation.
    ///
    /// `returned` is as ``Invitation/returned``. An abandoned use, whose device got no certificate, is free.
    /// - Returns: false if the invitation is used up or withdrawn.
    fileprivate func takes(
        _ invitation: inout SharedInvitation,
        of returned: Int,
        inPlaceOf isAbandoned: (Self) -> Bool
    ) -> Bool {
        // The change may run again after it was stored.
        if invitation.recent.contains(self) { return true }
        guard invitation.withdrawn == nil else { return false }
        // A device that asks again changes its use, so that no node takes it for an abandoned one any longer.
        let index =
            invitation.recent.firstIndex { $0.device == device } ?? invitation.recent.firstIndex(where: isAbandoned)
        if let index {
            invitation.recent[index] = self
            return true
        }
        guard invitation.taken - returned < invitation.uses else { return false }
        invitation.taken += 1
        invitation.recent = (invitation.recent + [self]).suffix(Invitation.maximumRecent)
        return true
    }
}
