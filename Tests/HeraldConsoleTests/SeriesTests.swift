import CoreMetrics
import HeraldModel
import Testing

@testable import HeraldConsole

@Suite struct SeriesTests {
    private func ring(_ capacity: Int = 4, step: Duration = .seconds(1)) -> SeriesRing {
        SeriesRing(count: 1, step: step, capacity: capacity)
    }

    private func sample(_ second: Double, _ reading: SeriesReading, clock: Double? = nil) -> SeriesSample {
        let time = WallTime(milliseconds: Int64((clock ?? second) * 1000))
        return SeriesSample(time: time, uptime: second, readings: [reading])
    }

    @Test func `a counter becomes a rate, unknown at first`() {
        var ring = ring()
        for (second, total) in [(10.5, 100.0), (11.5, 130), (12.5, 130), (13.5, 131)] {
            ring.add(sample(second, .total(total)))
        }
        #expect(ring.values(of: 0) == [nil, 30, 0, 1])
        #expect(ring.end == WallTime(seconds: 14))
    }

    @Test func `only the newest steps are kept`() {
        var ring = ring(3)
        for second in 0..<9 { ring.add(sample(Double(second), .level(Double(second)))) }
        #expect(ring.values(of: 0) == [6, 7, 8])
    }

    @Test func `a long step shows its rate and its mean so far`() {
        var (rates, levels) = (ring(2, step: .seconds(60)), ring(2, step: .seconds(60)))
        for second in stride(from: 58.0, through: 64, by: 1) {
            rates.add(sample(second, .total(second * 10)))
            levels.add(sample(second, .level(second)))
        }
        #expect(rates.values(of: 0) == [10, 10])
        #expect(levels.values(of: 0) == [58.5, 62])
    }

    @Test func `steps without a sample are unknown`() {
        var ring = ring(5)
        ring.add(sample(1, .level(7)))
        ring.add(sample(4, .level(9)))
        #expect(ring.values(of: 0) == [nil, 7, nil, nil, 9])
    }

    @Test func `a clock that is set forward leaves a gap and no wrong rate`() {
        var ring = ring()
        ring.add(sample(1, .total(0)))
        ring.add(sample(2, .total(10)))
        ring.add(sample(3, .total(20), clock: 3600))
        #expect(ring.values(of: 0) == [nil, nil, nil, 10])
        #expect(ring.end == WallTime(seconds: 3601))
    }

    @Test func `a clock that is set back takes the time after it along`() {
        var ring = ring()
        for second in 1...4 { ring.add(sample(Double(second), .total(Double(second) * 5))) }
        ring.add(sample(5, .total(25), clock: 2))
        #expect(ring.values(of: 0) == [nil, nil, nil, 5])
        ring.add(sample(6, .total(30), clock: 3))
        #expect(ring.values(of: 0) == [nil, nil, 5, 5])
        ring.add(sample(7, .total(35), clock: -5000))
        #expect(ring.values(of: 0) == [nil, nil, nil, 5])
        #expect(ring.end == WallTime(seconds: -4999))
    }

    @Test func `a source that is not there yet is unknown`() {
        var ring = ring(2)
        ring.add(sample(1, .unknown))
        ring.add(sample(2, .total(4)))
        #expect(ring.values(of: 0) == [nil, nil])
    }

    @Test func `a share of a distribution is that of the values of the step`() {
        var ring = ring(3)
        func reading(_ counts: [Int64]) -> SeriesReading {
            .distribution(Distribution(bounds: [1, 2, 4], counts: counts), share: 0.5)
        }
        ring.add(sample(1, reading([1000, 0, 0, 0])))
        ring.add(sample(2, reading([1000, 4, 0, 0])))
        ring.add(sample(3, reading([1000, 4, 0, 0])))
        #expect(ring.values(of: 0) == [nil, 1.5, nil])
        ring.add(sample(4, reading([1000, 4, 0, 9])))
        #expect(ring.values(of: 0).last == 4)
    }

    @Test func `the recorder reads rates, levels and shares from the metrics`() throws {
        let metrics = PrometheusRegistry()
        let recorder = SeriesRecorder(metrics: metrics)
        let stored = metrics.makeCounter(label: "herald_journal_lines_total", dimensions: [("outcome", "stored")])
        let replaced = metrics.makeCounter(label: "herald_journal_lines_total", dimensions: [("outcome", "replaced")])
        let accepted = metrics.makeCounter(label: "herald_provider_requests_total", dimensions: [("status", "200")])
        let refused = metrics.makeCounter(
            label: "herald_provider_requests_total",
            dimensions: [("status", "400"), ("reason", "BadTopic")]
        )
        let binary = metrics.makeCounter(label: "herald_binary_notifications_total", dimensions: [("status", "8")])
        metrics.makeMeter(label: "herald_devices_connected", dimensions: []).set(Int64(12))
        recorder.sample(at: WallTime(seconds: 100), uptime: .seconds(1))
        stored.increment(by: 6)
        replaced.increment(by: 2)
        accepted.increment(by: 9)
        refused.increment(by: 3)
        binary.increment(by: 1)
        metrics.makeTimer(label: "herald_delivery_duration_seconds", dimensions: []).recordNanoseconds(40_000_000)
        recorder.sample(at: WallTime(seconds: 101), uptime: .seconds(2))
        let answer = recorder.answer(.quarterHour, names: SeriesRecorder.names)
        let newest = answer.series.compactMapValues { $0.last.flatMap { $0 } }
        #expect(newest["stored"] == 6)
        #expect(newest["replaced"] == 2)
        #expect(newest["requests"] == 12)
        #expect(newest["requests_refused"] == 4)
        #expect(newest["devices_connected"] == 12)
        #expect(try #require(newest["delivery_seconds_p99"]) > 0.025)
        #expect(newest["notifications_waiting"] == nil)
        #expect(answer.series.count == SeriesRecorder.names.count)
        #expect(answer.series.values.allSatisfy { $0.count == 900 })
        #expect(answer.end == "1970-01-01T00:01:42.000Z")
    }

    @Test func `every series has a metric that exists`() {
        let known = Set(MetricCatalog.all.map(\.name))
        for series in SeriesCatalog.all {
            switch series.source {
            case .rate(let counters): #expect(known.isSuperset(of: counters.keys), "\(series.name)")
            case .level(let metric), .share(_, let metric): #expect(known.contains(metric), "\(series.name)")
            }
        }
        #expect(Set(SeriesCatalog.names).count == SeriesCatalog.all.count)
    }
}
