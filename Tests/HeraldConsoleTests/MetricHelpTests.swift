import CoreMetrics
import Foundation
import Testing

@testable import HeraldConsole

@Suite struct MetricHelpTests {
    private let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    @Test func `every metric in the source has a description`() throws {
        let sources = root.appendingPathComponent("Sources")
        let files = try #require(FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil))
        var found: Set<String> = []
        for case let file as URL in files where file.pathExtension == "swift" {
            for match in try String(contentsOf: file, encoding: .utf8).matches(of: /"(herald_[a-z_]+)"/) {
                found.insert(String(match.1))
            }
        }
        #expect(found == Set(MetricHelp.texts.keys.filter { $0.hasPrefix("herald_") }))
    }

    @Test func `the manual has every description`() throws {
        let file = root.appendingPathComponent("docs/metrics.md")
        let rows = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(String.init)
        for (name, text) in MetricHelp.texts {
            #expect(rows.contains("| `\(name)` | \(text.dropLast()) |"))
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
