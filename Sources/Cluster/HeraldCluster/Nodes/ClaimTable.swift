package import HeraldModel

/// The newest claim of each connected device of the cluster, as far as this node has followed a partition.
///
/// A dead node's claims stay until their devices connect again: ``NodeList`` says who is alive.
package struct ClaimTable: Sendable {
    /// A claim in the log.
    package struct Claim: Hashable, Sendable {
        /// The fence.
        package let sequence: UInt64
        package let holder: ClaimRecord
        /// The second in which this node heard of it.
        package let heard: UInt32
    }

    private struct Entry {
        let sequence: UInt64
        let holder: UInt32
        let heard: UInt32
    }

    /// Each process that has ever claimed a device; an entry names it by its index.
    private var holders: [ClaimRecord] = []
    private var indexes: [ClaimRecord: UInt32] = [:]
    private var entries: [DeviceNumber: Entry] = [:]

    package init() {}

    /// The number of devices that are claimed.
    package var count: Int { entries.count }

    /// The newest claim of a device; nil if there is none, or if it was released.
    package subscript(device: DeviceNumber) -> Claim? {
        entries[device].map { Claim(sequence: $0.sequence, holder: holders[Int($0.holder)], heard: $0.heard) }
    }

    /// Applies an entry of the log, of which this node hears in a second of its clock.
    /// - Returns: The device that it claims or releases; nil for another entry. A release stands for a newer claim too, which
    ///   may have been left out.
    package mutating func apply(_ entry: LogEntry, in second: UInt32) -> DeviceNumber? {
        guard let device = entry.subject.claimedDevice, entry.sequence > entries[device]?.sequence ?? 0 else {
            return nil
        }
        // A claim of another version of Herald is one of somebody whom this node cannot ring.
        guard !entry.isTombstone, let record = try? ClaimRecord(entry.payload) else {
            entries[device] = nil
            return device
        }
        entries[device] = Entry(sequence: entry.sequence, holder: index(of: record), heard: second)
        return device
    }

    private mutating func index(of holder: ClaimRecord) -> UInt32 {
        if let index = indexes[holder] { return index }
        let index = UInt32(holders.count)
        holders.append(holder)
        indexes[holder] = index
        return index
    }
}
