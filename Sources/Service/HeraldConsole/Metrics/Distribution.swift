/// Counts of values by range, as a histogram has them.
package struct Distribution: Hashable, Sendable {
    /// The upper bounds of the ranges, in the unit of the metric; the last range has none.
    let bounds: [Double]
    /// Counts of values by range; one more than ``bounds``.
    var counts: [Int64]

    /// Adds the values of another one with the same ranges.
    mutating func add(_ other: Distribution) {
        guard other.bounds == bounds else { return }
        for index in counts.indices { counts[index] += other.counts[index] }
    }

    /// The value that a share of the values does not exceed, between 0 and 1, among those that came after `earlier`.
    ///
    /// Interpolated within its range. Values above the last bound count as that bound.
    /// - Returns: Nil if no value came.
    func quantile(_ share: Double, since earlier: Distribution) -> Double? {
        guard earlier.counts.count == counts.count else { return nil }
        let added = zip(counts, earlier.counts).map { max(0, $0 - $1) }
        let total = added.reduce(0, +)
        guard total > 0 else { return nil }
        let rank = share * Double(total)
        var below = 0.0
        for (index, count) in added.enumerated() where count > 0 {
            if below + Double(count) >= rank {
                guard index < bounds.count else { break }
                let low = index == 0 ? 0 : bounds[index - 1]
                return low + (bounds[index] - low) * max(0, rank - below) / Double(count)
            }
            below += Double(count)
        }
        return bounds.last
    }
}
