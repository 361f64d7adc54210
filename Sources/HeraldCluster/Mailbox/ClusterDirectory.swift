package import HeraldMailbox
package import HeraldModel

/// The connections of a cluster's devices: a claim is a message of the log, and its sequence is the fence.
///
/// The last claim in the log wins. A claim is made before the mailbox is read, so the read has everything that was stored
/// before it.
package final class ClusterDirectory: ConnectionDirectory {
    /// A claim that could not be written, or whose outcome is unknown: the device tries again.
    package struct ClaimFailure: Error, Hashable, CustomStringConvertible {
        package let outcome: AppendOutcome

        package var description: String { "the connection could not be noted: \(RecordChangeFailure(outcome))" }
    }

    private let log: any ReplicatedLog
    private let partitions: Partitions
    private let record: ClaimRecord
    private let mailbox: ClusterMailbox
    private let rings: NodeRings

    package init(
        log: any ReplicatedLog,
        partitions: Partitions,
        record: ClaimRecord,
        mailbox: ClusterMailbox,
        rings: NodeRings
    ) {
        self.log = log
        self.partitions = partitions
        self.record = record
        self.mailbox = mailbox
        self.rings = rings
    }

    package func serve(_ holder: any ConnectionHolder) { rings.serve(holder) }

    package func claim(_ device: DeviceNumber, _ done: @escaping @Sendable (Result<UInt64, any Error>) -> Void) {
        let partition = partitions.partition(of: device)
        let message = LogMessage(.claim(device, partition), payload: record.body)
        log.append(message, to: .mailbox(partition)) { [rings] outcome in
            guard case .stored(let fence) = outcome else { return done(.failure(ClaimFailure(outcome: outcome))) }
            guard rings.claimed(device, fence: fence) else { return done(.failure(NewerConnection())) }
            done(.success(fence))
        }
    }

    package func release(_ device: DeviceNumber, fence: UInt64) {
        // A newer claim has taken the place of this one in the log.
        guard mailbox.at(device, { $0.released(device, fence: fence) }) else { return }
        let partition = partitions.partition(of: device)
        // A lost release does no harm: the next claim replaces this one.
        log.append(.tombstone(.claim(device, partition), expecting: fence), to: .mailbox(partition)) { _ in }
    }

    package func holds(_ device: DeviceNumber, fence: UInt64) -> Bool { mailbox.fence(of: device) == fence }

    package func isHeldElsewhere(_ device: DeviceNumber) -> Bool { rings.otherHolder(of: device) != nil }

    package func notifyHolders(of puts: [StoredPut]) { rings.stored(puts) }

    package func passOn(_ envelope: Envelope, _ done: @escaping @Sendable (_ isTaken: Bool) -> Void) {
        rings.passOn(envelope, done)
    }
}
