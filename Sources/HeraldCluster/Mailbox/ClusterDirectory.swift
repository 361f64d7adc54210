import HeraldMailbox
package import HeraldModel
import Synchronization

/// The claims of a node on its devices' connections, in the log of their mailboxes.
///
/// A claim's sequence is its fence: of all claims on a device, the last one in the log wins. What was stored before it has a
/// lower sequence, so a read that is bounded by the claim misses nothing.
package final class ClusterDirectory: ConnectionDirectory {
    private let log: any ReplicatedLog
    private let partitions: Partitions
    private let claim: ClaimRecord
    private let held = Mutex<[DeviceNumber: UInt64]>([:])

    package init(log: any ReplicatedLog, partitions: Partitions, node: NodeName) {
        self.log = log
        self.partitions = partitions
        claim = ClaimRecord(node: node, incarnation: .random(in: 0 ... .max))
    }

    /// The greatest sequence of this process's claims on a device that it has not released; nil if there is none.
    package func fence(of device: DeviceNumber) -> UInt64? { held.withLock { $0[device] } }

    package func claim(_ device: DeviceNumber, _ done: @escaping @Sendable (Result<UInt64, any Error>) -> Void) {
        let partition = partitions.partition(of: device)
        let message = LogMessage(.claim(device, partition), payload: claim.body)
        log.append(message, to: .mailbox(partition)) { [self] outcome in
            guard case .stored(let sequence) = outcome else {
                // If it was written all the same, no connection stands behind it, and the device's next claim replaces it.
                return done(.failure(RecordChangeFailure(outcome)))
            }
            held.withLock { $0[device] = max($0[device] ?? 0, sequence) }
            done(.success(sequence))
        }
    }

    package func release(_ device: DeviceNumber, fence: UInt64) {
        held.withLock { held in
            if held[device] == fence { held[device] = nil }
        }
        let partition = partitions.partition(of: device)
        // Refused if there is a newer claim. If it is lost, the claim stays and harms nobody.
        log.append(.tombstone(.claim(device, partition), expecting: fence), to: .mailbox(partition)) { _ in }
    }

    package func notifyHolder(of slot: Slot, sequence: UInt64) {
        // One node holds all devices: its post office heard of the put itself.
    }
}
