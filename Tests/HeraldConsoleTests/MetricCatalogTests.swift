import CoreMetrics
import Foundation
import Testing

@testable import HeraldConsole

@Suite struct MetricCatalogTests {
    private let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    @Test func `every metric in the source has a row`() throws {
        let sources = root.appendingPathComponent("Sources")
        let files = try #require(FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil))
        var found: Set<String> = []
        for case let file as URL in files where file.pathExtension == "swift" {
            for match in try String(contentsOf: file, encoding: .utf8).matches(of: /"(herald_[a-z_]+)"/) {
                found.insert(String(match.1))
            }
        }
        #expect(found == Set(MetricCatalog.all.map(\.name).filter { $0.hasPrefix("herald_") }))
    }

    @Test func `the manual has every metric, and no other`() throws {
        let file = root.appendingPathComponent("docs/metrics.md")
        let rows = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(String.init)
        let expected = MetricCatalog.all.map { metric in
            let labels = metric.labels.map { "`\($0)`" }.joined(separator: ", ")
            return "| `\(metric.name)` | \(metric.kind.rawValue) | \(labels) | \(metric.help.dropLast()) |"
        }
        #expect(rows.filter { $0.contains(/^\| `\w+` \| (counter|gauge|histogram) \|/) } == expected)
    }

    @Test func `names follow the conventions of Prometheus`() {
        for metric in MetricCatalog.all {
            let isCounter = metric.kind == .counter
            #expect(metric.name.hasSuffix("_total") == isCounter, "\(metric.name)")
            #expect(metric.kind != .histogram || metric.name.hasSuffix("_duration_seconds"), "\(metric.name)")
            #expect(metric.help.hasSuffix("."), "\(metric.name)")
        }
    }

    @Test func `a described metric has a line of help`() {
        let registry = PrometheusRegistry()
        registry.makeMeter(label: "herald_channels", dimensions: []).set(Int64(2))
        #expect(
            registry.text
                == "# HELP herald_channels Broadcast channels.\n# TYPE herald_channels gauge\nherald_channels 2\n"
        )
    }
}
