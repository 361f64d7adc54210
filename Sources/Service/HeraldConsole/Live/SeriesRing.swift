package import HeraldModel

/// The state of the source of a time series at one moment.
package enum SeriesReading: Hashable, Sendable {
    /// A number that only grows: the series shows its rate a second.
    case total(Double)
    /// A number that rises and falls: the series shows its mean.
    case level(Double)
    /// Counts of values: the series shows the value that the share does not exceed.
    case distribution(Distribution, share: Double)
    case unknown
}

/// The readings of all series at one moment.
package struct SeriesSample: Sendable {
    /// By the service's clock, which may jump.
    let time: WallTime
    /// Seconds by a clock that does not jump.
    let uptime: Double
    let readings: [SeriesReading]
}

/// The recent values of some time series, at one resolution.
///
/// The last value is that of a step that is not over. Unknown are steps without a sample, for example because the clock
/// was set forward; if it was set back, the steps after the new time are forgotten.
package struct SeriesRing: Sendable {
    /// Length of a step, in milliseconds.
    let step: Int64
    /// Number of steps that are kept.
    let capacity: Int
    private let count: Int
    /// Values by series, then by step modulo ``capacity``; not a number where unknown.
    private var values: [Float]
    /// Step of the last sample.
    private var current: Int64?
    /// The last sample before the current step.
    private var base: SeriesSample?
    private var last: SeriesSample?
    /// Sums and numbers of the levels in the current step, by series.
    private var levels: [(sum: Double, count: Int)]

    package init(count: Int, step: Duration, capacity: Int) {
        self.step = max(1, step.wholeMilliseconds)
        self.capacity = capacity
        self.count = count
        values = Array(repeating: .nan, count: count * capacity)
        levels = Array(repeating: (0, 0), count: count)
    }

    /// The end of the current step; nil before the first sample.
    package var end: WallTime? { current.map { WallTime(milliseconds: ($0 + 1) * step) } }

    /// The values of a series, oldest first; nil where unknown.
    package func values(of series: Int) -> [Double?] {
        guard let current else { return Array(repeating: nil, count: capacity) }
        return (1...Int64(capacity)).map { number(values[place(series, current + $0)]) }
    }

    /// The value of the current step; nil if it is unknown.
    package func newest(of series: Int) -> Double? {
        current.flatMap { number(values[place(series, $0)]) }
    }

    /// Six decimals: further ones of such a short number are noise.
    private func number(_ value: Float) -> Double? {
        value.isFinite ? (Double(value) * 1_000_000).rounded() / 1_000_000 : nil
    }

    package mutating func add(_ sample: SeriesSample) {
        let step = floorDivide(sample.time.milliseconds, by: self.step)
        if step != current {
            forget(until: step)
            current = step
            // The first step has no sample before it: its own first one.
            base = last ?? sample
            levels = Array(repeating: (0, 0), count: count)
        }
        for (series, reading) in sample.readings.prefix(count).enumerated() {
            if case .level(let level) = reading {
                levels[series].sum += level
                levels[series].count += 1
            }
            values[place(series, step)] = value(of: series, reading, at: sample.uptime).map { Float($0) } ?? .nan
        }
        last = sample
    }

    private func value(of series: Int, _ reading: SeriesReading, at uptime: Double) -> Double? {
        switch reading {
        case .unknown: return nil
        case .level: return levels[series].sum / Double(levels[series].count)
        case .total(let total):
            guard let base, base.uptime < uptime, case .total(let before) = base.readings[series] else { return nil }
            return max(0, total - before) / (uptime - base.uptime)
        case .distribution(let distribution, let share):
            guard let base else { return nil }
            if case .distribution(let before, _) = base.readings[series] {
                return distribution.quantile(share, since: before)
            }
            // It appears with its first value.
            let empty = Array(repeating: Int64(0), count: distribution.counts.count)
            return distribution.quantile(share, since: Distribution(bounds: distribution.bounds, counts: empty))
        }
    }

    /// Makes the steps between the current one and `step` unknown, in whichever direction it is.
    private mutating func forget(until step: Int64) {
        guard let current else { return }
        let steps = step > current ? current + 1...step : step...current
        guard steps.count < capacity else {
            values = Array(repeating: .nan, count: values.count)
            return
        }
        for step in steps {
            for series in 0..<count { values[place(series, step)] = .nan }
        }
    }

    private func place(_ series: Int, _ step: Int64) -> Int {
        let capacity = Int64(self.capacity)
        return series * self.capacity + Int(((step % capacity) + capacity) % capacity)
    }

    private func floorDivide(_ value: Int64, by divisor: Int64) -> Int64 {
        value >= 0 ? value / divisor : (value - divisor + 1) / divisor
    }
}
