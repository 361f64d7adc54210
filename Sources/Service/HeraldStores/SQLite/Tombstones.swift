/// The deleted notifications of one segment, as one bit each.
struct Tombstones: Hashable, Sendable {
    static let empty = Tombstones([SegmentPosition]())

    private var bits: UInt64

    init(_ positions: some Sequence<SegmentPosition>) {
        bits = positions.reduce(0) { $0 | 1 << UInt64($1.index) }
    }

    var count: Int { bits.nonzeroBitCount }

    func contains(_ index: Int) -> Bool { bits >> UInt64(index) & 1 == 1 }

    /// Whether all indexes are below `count`.
    func areWithin(_ count: Int) -> Bool { bits >> UInt64(count) == 0 }

    mutating func formUnion(_ other: Tombstones) { bits |= other.bits }

    // MARK: - Stored form

    /// The value in the table `tombstone`: the bits, and above them 16 bits of a checksum over the bits and the segment's
    /// number.
    ///
    /// Without the checksum, a flipped bit would lose a notification, or deliver one twice. The layout is part of the format.
    func stored(for segment: Int64) -> Int64 {
        Int64(bitPattern: Tombstones.check(bits, segment) << 48 | bits)
    }

    /// - Returns: nil if the checksum is wrong.
    init?(stored: Int64, for segment: Int64) {
        bits = UInt64(bitPattern: stored) & 0xFFFF_FFFF_FFFF
        guard UInt64(bitPattern: stored) >> 48 == Tombstones.check(bits, segment) else { return nil }
    }

    private static func check(_ bits: UInt64, _ segment: Int64) -> UInt64 {
        var sum = Checksum()
        sum.add(UInt64(bitPattern: segment))
        sum.add(bits)
        return sum.value >> 48
    }
}
