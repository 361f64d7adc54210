import CoreMetrics
import Synchronization

/// Value of one time series.
protocol MetricInstrument: AnyObject, Sendable {
    /// Lines of the series.
    func lines(name: String, labels: String) -> String

    /// The value of a counter or gauge; nil for a histogram.
    var number: Double? { get }

    /// The counts of a histogram.
    var distribution: Distribution? { get }
}

extension MetricInstrument {
    var number: Double? { nil }
    var distribution: Distribution? { nil }
}

/// A number that only grows.
final class MetricCounter: MetricInstrument, CounterHandler {
    private let count = Atomic<Int64>(0)

    func increment(by amount: Int64) {
        // A decrease would look like a restart.
        guard amount > 0 else { return }
        count.wrappingAdd(amount, ordering: .relaxed)
    }

    func reset() {
        count.store(0, ordering: .relaxed)
    }

    var number: Double? { Double(count.load(ordering: .relaxed)) }

    func lines(name: String, labels: String) -> String {
        MetricText.line(name, labels, String(count.load(ordering: .relaxed)))
    }
}

/// A number that may rise and fall.
final class MetricGauge: MetricInstrument, MeterHandler, RecorderHandler {
    private let bits = Atomic<UInt64>(0)

    func set(_ value: Int64) {
        set(Double(value))
    }

    func set(_ value: Double) {
        bits.store(value.bitPattern, ordering: .relaxed)
    }

    func increment(by amount: Double) {
        var held = bits.load(ordering: .relaxed)
        while true {
            let sum = (Double(bitPattern: held) + amount).bitPattern
            let (exchanged, original) = bits.weakCompareExchange(expected: held, desired: sum, ordering: .relaxed)
            if exchanged { return }
            held = original
        }
    }

    func decrement(by amount: Double) {
        increment(by: -amount)
    }

    func record(_ value: Int64) {
        set(value)
    }

    func record(_ value: Double) {
        set(value)
    }

    var number: Double? { Double(bitPattern: bits.load(ordering: .relaxed)) }

    func lines(name: String, labels: String) -> String {
        MetricText.line(name, labels, MetricText.number(Double(bitPattern: bits.load(ordering: .relaxed))))
    }
}

/// Counts of values in fixed ranges.
///
/// Recording costs a short search and two relaxed additions, and takes no lock.
final class MetricHistogram: MetricInstrument, RecorderHandler, TimerHandler {
    /// Upper bounds of the ranges, as whole numbers of a step.
    struct Ranges: Sendable {
        let bounds: [Int64]
        /// Steps of one unit of the metric.
        let stepsPerUnit: Double

        /// Durations, in steps of a nanosecond.
        static let seconds = Ranges(
            bounds: [
                100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000,
                100_000_000,
                250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000, 5_000_000_000, 10_000_000_000,
            ],
            stepsPerUnit: 1e9
        )
        /// Sizes: powers of four, up to a mebibyte.
        static let sizes = Ranges(
            bounds: [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576],
            stepsPerUnit: 1
        )
    }

    private let ranges: Ranges
    /// Counts by bound; the last has no bound.
    ///
    /// Allocated once, freed with the instrument.
    // Unsafe: the pointer never changes, and what it points to is atomic.
    private nonisolated(unsafe) let counts: UnsafeMutablePointer<Atomic<Int64>>
    private let sum = Atomic<Int64>(0)

    init(_ ranges: Ranges) {
        self.ranges = ranges
        counts = .allocate(capacity: ranges.bounds.count + 1)
        for index in 0...ranges.bounds.count { (counts + index).initialize(to: Atomic(0)) }
    }

    deinit {
        counts.deinitialize(count: ranges.bounds.count + 1)
        counts.deallocate()
    }

    private func add(_ steps: Int64) {
        var index = 0
        while index < ranges.bounds.count, ranges.bounds[index] < steps { index += 1 }
        counts[index].wrappingAdd(1, ordering: .relaxed)
        sum.wrappingAdd(steps, ordering: .relaxed)
    }

    func record(_ value: Int64) {
        record(Double(value))
    }

    func record(_ value: Double) {
        guard !value.isNaN else { return }
        add(Int64(min(max(value * ranges.stepsPerUnit, -1e18), 1e18)))
    }

    func recordNanoseconds(_ duration: Int64) {
        add(duration)
    }

    var distribution: Distribution? {
        Distribution(
            bounds: ranges.bounds.map { Double($0) / ranges.stepsPerUnit },
            counts: (0...ranges.bounds.count).map { counts[$0].load(ordering: .relaxed) }
        )
    }

    func lines(name: String, labels: String) -> String {
        let bounds = ranges.bounds.map { MetricText.number(Double($0) / ranges.stepsPerUnit) } + ["+Inf"]
        let separator = labels.isEmpty ? "" : ","
        var total: Int64 = 0
        var text = ""
        for (index, bound) in bounds.enumerated() {
            total += counts[index].load(ordering: .relaxed)
            text += MetricText.line("\(name)_bucket", "\(labels)\(separator)le=\"\(bound)\"", String(total))
        }
        let sum = Double(sum.load(ordering: .relaxed)) / ranges.stepsPerUnit
        text += MetricText.line("\(name)_sum", labels, MetricText.number(sum))
        return text + MetricText.line("\(name)_count", labels, String(total))
    }
}
