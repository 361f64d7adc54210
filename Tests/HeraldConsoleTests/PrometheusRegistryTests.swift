import CoreMetrics
import HeraldConsole
import Testing

@Suite struct PrometheusRegistryTests {
    let registry = PrometheusRegistry()

    @Test func `series of one name stand together in the order of their labels`() {
        registry.makeCounter(label: "herald_b_total", dimensions: [("result", "z")]).increment(by: 1)
        registry.makeCounter(label: "herald_b_total", dimensions: [("result", "a"), ("listener", "api")]).increment(
            by: 2
        )
        registry.makeRecorder(label: "herald_a", dimensions: [], aggregate: false).record(1.5)
        #expect(
            registry.text == """
                # TYPE herald_a gauge
                herald_a 1.5
                # TYPE herald_b_total counter
                herald_b_total{listener="api",result="a"} 2
                herald_b_total{result="z"} 1

                """
        )
    }

    @Test func `the same series is one instrument`() {
        registry.makeCounter(label: "a", dimensions: [("x", "1"), ("y", "2")]).increment(by: 1)
        registry.makeCounter(label: "a", dimensions: [("y", "2"), ("x", "1")]).increment(by: 1)
        #expect(registry.text == "# TYPE a counter\na{x=\"1\",y=\"2\"} 2\n")
    }

    @Test func `a counter never falls`() {
        let counter = registry.makeCounter(label: "a", dimensions: [])
        counter.increment(by: 5)
        counter.increment(by: -3)
        #expect(registry.text.hasSuffix("a 5\n"))
    }

    @Test func `a gauge is set, raised and lowered`() {
        let gauge = registry.makeMeter(label: "a", dimensions: [])
        gauge.set(Int64(10))
        gauge.increment(by: 2.5)
        gauge.decrement(by: 0.25)
        #expect(registry.text.hasSuffix("a 12.25\n"))
    }

    @Test func `a histogram counts into cumulative buckets`() {
        let recorder = registry.makeRecorder(label: "size", dimensions: [("k", "v")], aggregate: true)
        for value in [Int64(1), 2, 5000, 10_000_000] { recorder.record(value) }
        recorder.record(Double.nan)
        let lines = registry.text.split(separator: "\n")
        #expect(lines.first == "# TYPE size histogram")
        #expect(lines.contains(#"size_bucket{k="v",le="1"} 1"#))
        #expect(lines.contains(#"size_bucket{k="v",le="4"} 2"#))
        #expect(lines.contains(#"size_bucket{k="v",le="1048576"} 3"#))
        #expect(lines.contains(#"size_bucket{k="v",le="+Inf"} 4"#))
        #expect(lines.contains(#"size_sum{k="v"} 10005003"#))
        #expect(lines.last == #"size_count{k="v"} 4"#)
    }

    @Test func `a timer is in seconds`() {
        registry.makeTimer(label: "wait_seconds", dimensions: []).recordNanoseconds(30_000_000)
        let lines = registry.text.split(separator: "\n")
        #expect(lines.contains(#"wait_seconds_bucket{le="0.025"} 0"#))
        #expect(lines.contains(#"wait_seconds_bucket{le="0.05"} 1"#))
        #expect(lines.contains("wait_seconds_sum 0.03"))
        #expect(lines.contains(#"wait_seconds_bucket{le="0.0001"} 0"#))
    }

    @Test func `names and labels are made fit`() {
        registry.makeCounter(label: "9 lives.total", dimensions: [("a-b", "x\"y\\z\nw")]).increment(by: 1)
        #expect(registry.text == "# TYPE _9_lives_total counter\n_9_lives_total{a_b=\"x\\\"y\\\\z\\nw\"} 1\n")
    }

    @Test func `numbers beyond all bounds are written as Prometheus reads them`() {
        let gauge = registry.makeMeter(label: "a", dimensions: [])
        for (value, text) in [(Double.infinity, "+Inf"), (-.infinity, "-Inf"), (.nan, "NaN"), (1e300, "1e+300")] {
            gauge.set(value)
            #expect(registry.text.hasSuffix("a \(text)\n"))
        }
    }

    @Test func `a name keeps its first kind`() {
        registry.makeCounter(label: "a", dimensions: []).increment(by: 1)
        registry.makeMeter(label: "a", dimensions: []).set(9.0)
        #expect(registry.text == "# TYPE a counter\na 1\n")
    }

    @Test func `the number of series is bounded`() {
        for index in 0..<(PrometheusRegistry.maximumSeries + 10) {
            registry.makeCounter(label: "a", dimensions: [("i", String(index))]).increment(by: 1)
        }
        #expect(registry.text.split(separator: "\n").count == PrometheusRegistry.maximumSeries + 1)
    }
}
