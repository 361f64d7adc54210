import HeraldJSON
package import HeraldModel
import Synchronization

/// A range of time that the series are kept for, and its resolution.
package enum SeriesRange: String, CaseIterable, Sendable {
    case quarterHour = "15m"
    case day = "24h"
    case month = "30d"

    var step: Duration {
        switch self {
        case .quarterHour: .seconds(1)
        case .day: .seconds(60)
        case .month: .seconds(900)
        }
    }

    var count: Int {
        switch self {
        case .quarterHour: 900
        case .day: 1440
        case .month: 2880
        }
    }
}

/// The values of some series over a range.
package struct SeriesAnswer: Codable, SnakeCased, Sendable {
    package let stepSeconds: Int
    /// The end of the last step; absent before the first sample.
    package let end: String?
    /// Values by name, oldest first; null where unknown.
    package let series: [String: [Double?]]
}

/// Keeps the recent values of the service's main metrics, in memory; about 0.6 MB.
package final class SeriesRecorder: Sendable {
    package static let names = SeriesCatalog.names

    private let metrics: PrometheusRegistry
    private let rings: Mutex<[SeriesRange: SeriesRing]>

    package init(metrics: PrometheusRegistry) {
        self.metrics = metrics
        let rings = SeriesRange.allCases.map { range in
            (range, SeriesRing(count: SeriesCatalog.all.count, step: range.step, capacity: range.count))
        }
        self.rings = Mutex(Dictionary(uniqueKeysWithValues: rings))
    }

    /// Reads all metrics; for once a second.
    package func sample(at time: WallTime, uptime: Duration) {
        let sample = SeriesSample(
            time: time,
            uptime: Double(uptime.wholeMilliseconds) / 1000,
            readings: SeriesCatalog.all.map { $0.reading(metrics) }
        )
        rings.withLock { rings in
            for range in SeriesRange.allCases { rings[range]?.add(sample) }
        }
    }

    /// The newest value of each series that is known.
    package var newest: [String: Double] {
        rings.withLock { rings in
            guard let ring = rings[.quarterHour] else { return [:] }
            return SeriesCatalog.names.enumerated().reduce(into: [:]) { newest, series in
                newest[series.element] = ring.newest(of: series.offset)
            }
        }
    }

    /// The series of some names; a name that does not exist is left out.
    package func answer(_ range: SeriesRange, names: [String]) -> SeriesAnswer {
        rings.withLock { rings in
            let ring = rings[range]
            let series = names.compactMap { name in
                SeriesCatalog.names.firstIndex(of: name).map { (name, ring?.values(of: $0) ?? []) }
            }
            return SeriesAnswer(
                stepSeconds: Int(range.step.components.seconds),
                end: ring?.end?.rfc3339,
                series: Dictionary(series) { first, _ in first }
            )
        }
    }
}
