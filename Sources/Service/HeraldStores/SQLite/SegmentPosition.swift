/// The position of a stored notification on disk: its segment, and its index in the segment.
///
/// One word: the segment's number × 2¹², plus the index × 2⁶, plus the number of notifications in the segment less one.
/// So positions of one segment are neighbours in order, and every position tells how many notifications the segment has.
struct SegmentPosition: Hashable, Comparable, Sendable {
    /// Valid segment numbers.
    ///
    /// They rise, and no process uses one twice: enough for a million segments a second for 142 years.
    static let numbers: ClosedRange<Int64> = 1...(1 << 52) - 1

    private let word: UInt64

    /// - Parameters:
    ///   - segment: One of ``numbers``.
    ///   - index: Less than `count`.
    ///   - count: 1 to ``Segment/countLimit``.
    init(segment: Int64, index: Int, count: Int) {
        word = UInt64(bitPattern: segment) << 12 | UInt64(index) << 6 | UInt64(count - 1)
    }

    var segment: Int64 { Int64(bitPattern: word >> 12) }
    var index: Int { Int(word >> 6 & 63) }
    var count: Int { Int(word & 63) + 1 }

    static func < (one: SegmentPosition, other: SegmentPosition) -> Bool { one.word < other.word }
}
