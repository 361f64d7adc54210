import HeraldCluster
import HeraldModel
import Testing

/// The faults of NATS servers with which a node does not serve.
@Suite struct ServerCheckTests {
    private static let now = WallTime(seconds: 1_800_000_000)

    private func findings(
        version: String = "2.15.1",
        ahead: Duration = .zero,
        syncsAlways: Bool? = true
    ) -> [ClusterFinding] {
        let report = ServerReport(
            name: "n1",
            version: version,
            now: Self.now + ahead,
            syncsAlways: syncsAlways,
            memory: 0
        )
        return ServerCheck(now: Self.now).findings(report)
    }

    @Test func `a server as Herald needs it has no fault`() {
        #expect(findings().isEmpty)
        #expect(findings(version: "2.16.0-beta.1").isEmpty)
        #expect(findings(version: "10.0.0").isEmpty)
    }

    @Test(arguments: ["2.15.0", "2.9.10", "1.99.99", "nonsense", ""])
    func `an older version is refused`(version: String) {
        #expect(findings(version: version).map(\.severity) == [.refusal])
    }

    @Test func `a server that does not sync every write is refused`() {
        #expect(findings(syncsAlways: false).first?.line.contains("sync_interval: always") == true)
        #expect(findings(syncsAlways: nil).first?.line.contains("jetstream") == true)
    }

    @Test func `a clock that differs is told, and refused if it differs by much`() {
        #expect(findings(ahead: .seconds(2)).isEmpty)
        #expect(findings(ahead: .seconds(-3)).map(\.severity) == [.warning])
        #expect(findings(ahead: .seconds(31)).map(\.severity) == [.refusal])
        #expect(findings(ahead: .seconds(-31)).first?.text.contains("31 s behind") == true)
    }

    @Test func `a report is read from a server's answer`() throws {
        let body = """
            {"server_name": "n1", "version": "2.15.1", "now": "2027-01-15T08:00:00.123456789Z", "mem": 5,
             "jetstream": {"config": {"sync_interval": 120000000000, "sync_always": true}}}
            """
        let report = try ServerReport(varz: Array(body.utf8))
        #expect(report.now == Self.now + .milliseconds(123))
        #expect(report.syncsAlways == true)
        #expect(
            try ServerReport(varz: Array(#"{"server_name":"a","version":"2","now":"2027-01-15T08:00:00Z"}"#.utf8))
                .syncsAlways == nil
        )
        #expect(throws: (any Error).self) {
            try ServerReport(varz: Array(#"{"server_name":"a","version":"2","now":"?"}"#.utf8))
        }
    }

    @Test func `a stream that goes back is a loss, and stays one`() {
        var seen = SeenStreams()
        #expect(seen.note("S", .init(created: "a", lastSequence: 5)) == nil)
        #expect(seen.note("S", .init(created: "a", lastSequence: 6)) == nil)
        #expect(seen.note("S", .init(created: "a", lastSequence: 4))?.severity == .refusal)
        #expect(seen.note("S", .init(created: "b", lastSequence: 9))?.severity == .refusal)
        #expect(seen.note("S", .init(created: "a", lastSequence: 5))?.severity == .refusal)
        #expect(seen.note("S", .init(created: "a", lastSequence: 6)) == nil)
        #expect(seen.missing("S")?.severity == .refusal)
        #expect(seen.missing("T") == nil)
    }
}
