import HeraldMailbox
package import HeraldModel

/// The connections of a cluster's devices: a claim is a message of the log, and its sequence is the fence.
///
/// The last claim in the log wins. A claim is made before the mailbox is read, so the read has everything that was stored
/// before it.
package final class ClusterDirectory: ConnectionDirectory {
    /// A claim that could not be written, or whose outcome is unknown: the device tries again.
    package struct ClaimFailure: Error, Hashable {
        package let outcome: AppendOutcome
    }

    private let log: any ReplicatedLog
    private let partitions: Partitions
    private let record: ClaimRecord
    private let mailbox: ClusterMailbox

    package init(log: any ReplicatedLog, partitions: Partitions, record: ClaimRecord, mailbox: ClusterMailbox) {
        self.log = log
        self.partitions = partitions
        self.record = record
        self.mailbox = mailbox
    }

    package func claim(_ device: DeviceNumber, _ done: @escaping @Sendable (Result<UInt64, any Error>) -> Void) {
        let partition = partitions.partition(of: device)
        let message = LogMessage(.claim(device, partition), payload: record.body)
        log.append(message, to: .mailbox(partition)) { [mailbox] outcome in
            guard case .stored(let fence) = outcome else { return done(.failure(ClaimFailure(outcome: outcome))) }
            mailbox.saw(fence, of: device)
            done(.success(fence))
        }
    }

    package func release(_ device: DeviceNumber, fence: UInt64) {
        let partition = partitions.partition(of: device)
        // A lost release does no harm: the next claim replaces this one.
        log.append(.tombstone(.claim(device, partition), expecting: fence), to: .mailbox(partition)) { _ in }
    }

    /// Does nothing: the device is connected to this node, or to none.
    package func notifyHolder(of slot: Slot, sequence: UInt64) {}
}
