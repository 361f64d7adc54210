package import CoreMetrics
import Synchronization

/// All metrics of the process, with their text for Prometheus.
///
/// Counters and gauges are atomics; histograms have fixed buckets. The first use of a name fixes its kind, and the number
/// of time series is limited; other series are dropped.
package final class PrometheusRegistry: MetricsFactory {
    /// Maximum number of time series.
    package static let maximumSeries = 2000

    private let families = Mutex<[String: MetricFamily]>([:])

    package init() {}

    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        instrument(label, dimensions, kind: .counter) { MetricCounter() } ?? NOOPMetricsHandler.instance
    }

    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        instrument(label, dimensions, kind: .gauge) { MetricGauge() } ?? NOOPMetricsHandler.instance
    }

    package func makeRecorder(
        label: String,
        dimensions: [(String, String)],
        aggregate: Bool
    ) -> any RecorderHandler {
        guard aggregate else {
            return instrument(label, dimensions, kind: .gauge) { MetricGauge() } ?? NOOPMetricsHandler.instance
        }
        return instrument(label, dimensions, kind: .histogram) {
            MetricHistogram(.sizes)
        } ?? NOOPMetricsHandler.instance
    }

    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        instrument(label, dimensions, kind: .histogram) {
            MetricHistogram(.seconds)
        } ?? NOOPMetricsHandler.instance
    }

    // Series stay: a counter that disappears and returns looks like a restart.
    package func destroyCounter(_ handler: any CounterHandler) {}
    package func destroyMeter(_ handler: any MeterHandler) {}
    package func destroyRecorder(_ handler: any RecorderHandler) {}
    package func destroyTimer(_ handler: any TimerHandler) {}

    /// The metrics, sorted by name.
    package var text: String {
        let families = families.withLock { $0 }
        return families.sorted { $0.key < $1.key }.map { $0.value.text(name: $0.key) }.joined()
    }

    /// The metrics, and those of the process itself.
    package var exposition: String { text + ProcessMetrics.text() }

    /// Sum over the series of a counter or gauge whose labels match; nil if there is no such series.
    ///
    /// The labels have the form `listener="api",result="ok"`.
    func sum(of name: String, where matches: (String) -> Bool) -> Double? {
        let series = families.withLock { $0[name]?.series } ?? [:]
        let numbers = series.compactMap { matches($0.key) ? $0.value.number : nil }
        return numbers.isEmpty ? nil : numbers.reduce(0, +)
    }

    /// The counts of a histogram, of all its series together; nil if there is none.
    func distribution(of name: String) -> Distribution? {
        let series = families.withLock { $0[name]?.series } ?? [:]
        return series.values.lazy.compactMap(\.distribution).reduce(nil as Distribution?) { sum, next in
            guard var sum else { return next }
            sum.add(next)
            return sum
        }
    }

    /// The instrument of a series, existing or new.
    private func instrument<Instrument: MetricInstrument>(
        _ label: String,
        _ dimensions: [(String, String)],
        kind: MetricFamily.Kind,
        _ make: () -> Instrument
    ) -> Instrument? {
        let name = MetricText.name(label)
        let labels = MetricText.labels(dimensions)
        return families.withLock { families in
            if let known = families[name] {
                guard known.kind == kind else { return nil }
                if let series = known.series[labels] { return series as? Instrument }
            }
            guard families.values.reduce(0, { $0 + $1.series.count }) < PrometheusRegistry.maximumSeries else {
                return nil
            }
            let made = make()
            families[name, default: MetricFamily(kind: kind)].series[labels] = made
            return made
        }
    }
}

/// All series of one name.
struct MetricFamily: Sendable {
    enum Kind: String, Sendable {
        case counter
        case gauge
        case histogram
    }

    let kind: Kind
    /// Instruments by the text of their labels, without braces.
    var series: [String: any MetricInstrument] = [:]

    init(kind: Kind) {
        self.kind = kind
    }

    func text(name: String) -> String {
        let lines = series.sorted { $0.key < $1.key }.map { $0.value.lines(name: name, labels: $0.key) }
        return MetricText.header(name, kind.rawValue) + lines.joined()
    }
}
