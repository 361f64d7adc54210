import CoreMetrics
import Synchronization

/// Value of one time series.
protocol MetricInstrument: AnyObject, Sendable {
    /// Lines of the series.
    func lines(name: String, labels: String) -> String
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

    func lines(name: String, labels: String) -> String {
        MetricText.line(name, labels, MetricText.number(Double(bitPattern: bits.load(ordering: .relaxed))))
    }
}

/// Counts of values in fixed ranges.
final class MetricHistogram: MetricInstrument, RecorderHandler, TimerHandler {
    /// Upper bounds for durations, in seconds.
    static let seconds: [Double] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
    /// Upper bounds for sizes: powers of four, up to a mebibyte.
    static let sizes: [Double] = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576]

    private struct State {
        /// Counts by bound; the last has no bound.
        var counts: [UInt64]
        var sum = 0.0
    }

    private let bounds: [Double]
    private let state: Mutex<State>

    init(bounds: [Double]) {
        self.bounds = bounds
        state = Mutex(State(counts: Array(repeating: 0, count: bounds.count + 1)))
    }

    func record(_ value: Int64) {
        record(Double(value))
    }

    func record(_ value: Double) {
        guard !value.isNaN else { return }
        let index = bounds.firstIndex { value <= $0 } ?? bounds.count
        state.withLock { state in
            state.counts[index] += 1
            state.sum += value
        }
    }

    func recordNanoseconds(_ duration: Int64) {
        record(Double(duration) / 1e9)
    }

    func lines(name: String, labels: String) -> String {
        let (counts, sum) = state.withLock { ($0.counts, $0.sum) }
        var total: UInt64 = 0
        var text = ""
        for (index, count) in counts.enumerated() {
            total += count
            let bound = index < bounds.count ? MetricText.number(bounds[index]) : "+Inf"
            let separator = labels.isEmpty ? "" : ","
            text += MetricText.line("\(name)_bucket", "\(labels)\(separator)le=\"\(bound)\"", String(total))
        }
        text += MetricText.line("\(name)_sum", labels, MetricText.number(sum))
        return text + MetricText.line("\(name)_count", labels, String(total))
    }
}
