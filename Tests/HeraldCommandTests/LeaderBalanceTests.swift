import Foundation
import HeraldCluster
import HeraldNATS
import Testing

@testable import HeraldCommand
@testable import HeraldService

@Suite struct LeaderBalanceTests {
    /// A stream, its leader, and the others; those in lower case have caught up, those with a hyphen do not run.
    private func stream(_ name: String, _ leader: String?, _ others: String...) throws -> StreamInfo {
        let replicas = others.map { other in
            let name = other.trimmingCharacters(in: ["-"])
            return
                #"{"name":"\#(name.lowercased())","current":\#(other == name.lowercased()),"offline":\#(other != name)}"#
        }
        let led = leader.map { #""leader":"\#($0)","# } ?? ""
        let text = """
            {"config":{"name":"\(name)","subjects":[]},"created":"2027-01-15T08:00:00Z",
             "state":{"messages":0,"bytes":0,"first_seq":0,"last_seq":0},
             "cluster":{\(led)"replicas":[\(replicas.joined(separator: ","))]}}
            """
        return try JSONDecoder().decode(StreamInfo.self, from: Data(text.utf8))
    }

    @Test func `one that leads all gives the others their share`() throws {
        let balance = LeaderBalance(try (1...6).map { try stream("S\($0)", "a", "b", "c") })
        #expect(balance.moves.map(\.to) == ["b", "c", "b", "c"])
        #expect(Set(balance.moves.map(\.from)) == ["a"])
        #expect(balance.hint == "a leads 6 of 6 streams: `herald cluster balance` spreads them")
    }

    @Test func `a server that does not run is told from one that is behind`() throws {
        let streams = try [stream("S1", "a", "b", "-c"), stream("S2", "a", "B", "-c")]
        #expect(
            StreamCheck.findings(streams, running: ["b"]).map(\.line) == [
                "nats-server c, which has 2 streams, does not run, or is cut off from the others: start it, or mend its network",
                "nats-server b is behind with 1 stream: wait until it has caught up",
            ]
        )
        #expect(
            StreamCheck.findings(streams).last?.remedy
                == "start it if it does not run, or else wait until it has caught up"
        )
    }

    @Test func `what is spread stays`() throws {
        let balance = LeaderBalance([
            try stream("S1", "a", "b", "c"), try stream("S2", "b", "a", "c"), try stream("S3", "c", "a", "b"),
            try stream("S4", "a", "b", "c"),
        ])
        #expect(balance.moves.isEmpty && balance.hint == nil)
        #expect(LeaderBalance([StreamInfo]()).hint == nil)
    }

    @Test func `a server that is behind takes over nothing, and an election is left alone`() throws {
        let balance = LeaderBalance([
            try stream("S1", "a", "B", "c"), try stream("S2", "a", "B", "c"), try stream("S3", nil, "B", "c"),
        ])
        #expect(balance.moves == [LeaderBalance.Move(stream: "S1", from: "a", to: "c")])
    }
}
