package import HeraldMailbox
package import HeraldModel

/// The connections of a cluster's devices: a claim is a message of the log, and its sequence is the fence.
///
/// The last claim in the log wins. A claim is made before the mailbox is read, so the read has everything that was stored
/// before it.
///
/// A claim names the one that it replaces. So one that comes late, after its node stood still or was cut off, does not replace
/// the claim of a newer connection elsewhere.
package final class ClusterDirectory: ConnectionDirectory {
    /// A claim that could not be written, or whose outcome is unknown: the device tries again.
    package struct ClaimFailure: Error, Hashable, CustomStringConvertible {
        package let outcome: AppendOutcome

        package var description: String {
            "the device's connection could not be claimed: \(RecordChangeFailure(outcome))"
        }
    }

    private let context: ClusterContext
    private let mailbox: ClusterMailbox
    private let rings: NodeRings

    package init(_ context: ClusterContext, mailbox: ClusterMailbox, rings: NodeRings) {
        self.context = context
        self.mailbox = mailbox
        self.rings = rings
    }

    package func serve(_ holder: any ConnectionHolder) { rings.serve(holder) }

    package func claim(
        _ device: DeviceNumber,
        for client: @escaping ClientCheck,
        _ done: @escaping @Sendable (Result<UInt64, any Error>) -> Void
    ) {
        claim(device, for: client, replacing: nil, attempt: 1, done)
    }

    /// Makes an attempt; `found` is the newest claim or release, of which the refusal of the attempt before tells, nil at first.
    private func claim(
        _ device: DeviceNumber,
        for client: @escaping ClientCheck,
        replacing found: UInt64?,
        attempt: Int,
        _ done: @escaping @Sendable (Result<UInt64, any Error>) -> Void
    ) {
        client { [self] silence in
            guard let silence else { return done(.failure(ClientGone())) }
            let known = rings.newestClaim(of: device)
            if silence >= ClusterLimits.promptConnect {
                // The client may have given up, and the claim that came since may be that of its next connection.
                let isNews = found != nil || known.map { rings.isNews($0, within: silence) } ?? false
                guard !isNews else { return done(.failure(ClientGone())) }
            }
            let partition = context.partitions.partition(of: device)
            let expected = found ?? known?.sequence ?? 0
            let message = LogMessage(.claim(device, partition), payload: context.own.body, expectedSequence: expected)
            context.log.append(message, to: .mailbox(partition)) { [self] outcome in
                switch outcome {
                case .stored(let fence):
                    guard rings.claimed(device, fence: fence) else { return done(.failure(NewerConnection())) }
                    done(.success(fence))
                case .moved(let newest) where attempt < ClusterLimits.changeAttempts:
                    claim(device, for: client, replacing: newest, attempt: attempt + 1, done)
                case .moved, .refused, .notSent, .unknown: done(.failure(ClaimFailure(outcome: outcome)))
                }
            }
        }
    }

    package func release(_ device: DeviceNumber, fence: UInt64) {
        // A newer claim has taken the place of this one in the context.log.
        guard mailbox.at(device, { $0.released(device, fence: fence) }) else { return }
        let partition = context.partitions.partition(of: device)
        // A lost release does no harm: the next claim replaces this one.
        context.log.append(.tombstone(.claim(device, partition), expecting: fence), to: .mailbox(partition)) { _ in }
    }

    package func holds(_ device: DeviceNumber, fence: UInt64) -> Bool { mailbox.fence(of: device) == fence }

    package func isHeldElsewhere(_ device: DeviceNumber) -> Bool { otherHolder(of: device) != nil }

    /// The other node to which a device is connected, if it lives.
    package func otherHolder(of device: DeviceNumber) -> NodeName? { rings.otherHolder(of: device) }

    package func notifyHolders(of puts: [StoredPut]) { rings.stored(puts) }

    package func passOn(_ envelope: Envelope, _ done: @escaping @Sendable (_ isTaken: Bool) -> Void) {
        rings.passOn(envelope, done)
    }
}
