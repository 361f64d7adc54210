/// Where a notification lies on disk: in which bundle, and which of its notifications it is.
///
/// One word: the bundle's number × 2¹², plus the position × 2⁶, plus the number of notifications in the bundle less one.
/// So places of one bundle are neighbours in order, and whoever has a place knows whether the bundle holds more.
struct Place: Hashable, Comparable, Sendable {
    /// Bundle numbers rise and are never used twice by a process: a million bundles a second for 142 years.
    static let numbers: ClosedRange<Int64> = 1...(1 << 52) - 1

    private let word: UInt64

    /// - Parameters:
    ///   - bundle: One of ``numbers``.
    ///   - position: Less than `count`.
    ///   - count: 1 to ``Bundle/memberLimit``.
    init(bundle: Int64, position: Int, count: Int) {
        word = UInt64(bitPattern: bundle) << 12 | UInt64(position) << 6 | UInt64(count - 1)
    }

    var bundle: Int64 { Int64(bitPattern: word >> 12) }
    var position: Int { Int(word >> 6 & 63) }
    var count: Int { Int(word & 63) + 1 }

    static func < (one: Place, other: Place) -> Bool { one.word < other.word }
}

/// Some of the members of a bundle, as bits.
struct Members: Hashable, Sendable {
    static let empty = Members([Place]())

    private var bits: UInt64

    init(_ places: some Sequence<Place>) {
        bits = places.reduce(0) { $0 | 1 << UInt64($1.position) }
    }

    var count: Int { bits.nonzeroBitCount }

    func contains(_ position: Int) -> Bool { bits >> UInt64(position) & 1 == 1 }

    /// Whether all of them are members of a bundle of so many.
    func areWithin(_ count: Int) -> Bool { bits >> UInt64(count) == 0 }

    mutating func formUnion(_ other: Members) { bits |= other.bits }

    // On disk.

    /// As it is in the table `dead`: the bits, and above them 16 bits of a checksum over them and the bundle's number,
    /// without which a flipped bit would be a notification that is lost, or one that comes twice.
    ///
    /// Never change it.
    func stored(for bundle: Int64) -> Int64 {
        Int64(bitPattern: Members.check(bits, bundle) << 48 | bits)
    }

    /// - Returns: nil if it cannot have been written.
    init?(stored: Int64, for bundle: Int64) {
        bits = UInt64(bitPattern: stored) & 0xFFFF_FFFF_FFFF
        guard UInt64(bitPattern: stored) >> 48 == Members.check(bits, bundle) else { return nil }
    }

    private static func check(_ bits: UInt64, _ bundle: Int64) -> UInt64 {
        var sum = Checksum()
        sum.add(UInt64(bitPattern: bundle))
        sum.add(bits)
        return sum.value >> 48
    }
}
