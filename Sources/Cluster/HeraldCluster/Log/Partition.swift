package import HeraldModel

/// One share of the devices: it has streams of its own.
package struct Partition: Hashable, Sendable {
    /// 0 to ``Partitions/count`` - 1.
    package let index: Int

    package init(_ index: Int) {
        self.index = index
    }
}

/// The division of the devices into partitions, fixed when a cluster is created.
package struct Partitions: Hashable, Sendable {
    /// 1 to ``ClusterLimits/partitions``.
    package let count: Int

    /// - Returns: nil if the count is out of range.
    package init?(count: Int) {
        guard ClusterLimits.partitions.contains(count) else { return nil }
        self.count = count
    }

    package var all: [Partition] { (0..<count).map(Partition.init) }

    /// The partition of a device's mailbox and registrations.
    package func partition(of device: DeviceNumber) -> Partition {
        // Fibonacci hashing: numbers are handed out in blocks.
        partition(hash: (device.value &* 0x9E37_79B9_7F4A_7C15) >> 40)
    }

    /// The partition of a device's record, which is found by its identifier and not by its number.
    package func partition(of device: DeviceHash) -> Partition {
        partition(hash: device.bytes.prefix(4).reduce(0) { $0 << 8 | UInt64($1) })
    }

    private func partition(hash: UInt64) -> Partition { Partition(Int(hash % UInt64(count))) }
}
