import AsyncHTTPClient
import Foundation
import HeraldConsole
import NIOCore
import NIOHTTP1
import Synchronization
import Testing

@Suite struct LiveRoutesTests {
    private let harness = ConsoleHarness()
    private var bearer: String { "Bearer \(harness.token)" }

    private struct Problems: Decodable {
        let items: [Problem]
    }

    @Test func `series are those that were asked for`() async throws {
        harness.live.look(uptime: .seconds(1))
        try await harness.withPort { base in
            let path = base + "/v1/series?range=24h&names=received,devices_connected"
            let answer = try await harness.ask("GET", path, token: bearer).decode(SeriesAnswer.self)
            #expect(Set(answer.series.keys) == ["received", "devices_connected"])
            #expect(answer.series["received"]?.count == 1440)
            for wrong in ["range=1y", "names=", "names=received,nothing"] {
                #expect(try await harness.ask("GET", base + "/v1/series?\(wrong)", token: bearer).status == 400)
            }
        }
    }

    @Test func `problems are listed, those that are over only with the history`() async throws {
        harness.findings.withLock { $0 = [ProblemFinding(.disk, "little room")] }
        harness.live.look(uptime: .seconds(1))
        harness.findings.withLock { $0 = [ProblemFinding(.clock, "jumped")] }
        harness.live.look(uptime: .seconds(2))
        try await harness.withPort { base in
            let now = try await harness.ask("GET", base + "/v1/problems", token: bearer).decode(Problems.self)
            #expect(now.items.map(\.kind) == [.clock])
            let all = try await harness.ask("GET", base + "/v1/problems?history=1", token: bearer)
            #expect(try all.decode(Problems.self).items.map(\.kind) == [.clock, .disk])
            #expect(try await harness.ask("GET", base + "/v1/problems?history=x", token: bearer).status == 400)
            #expect(try await harness.ask("GET", base + "/v1/refusals", token: bearer).body == #"{"items":[]}"#)
        }
    }

    @Test func `events have what is wanted, and go on where they were`() async throws {
        harness.findings.withLock { $0 = [ProblemFinding(.disk, "little room")] }
        harness.live.look(uptime: .seconds(1))
        let line = StandInAdministration.entry
        harness.lines.batches.withLock { $0 = [LineBatch(items: [line], more: 4, skipped: 2, place: 17)] }
        try await harness.withPort { base in
            var request = HTTPClientRequest(url: base + "/v1/events?want=problems,lines")
            request.headers.add(name: "authorization", value: bearer)
            request.headers.add(name: "last-event-id", value: "9")
            let response = try await HTTPClient.shared.execute(request, timeout: .minutes(5))
            #expect(response.headers.first(name: "content-type") == "text/event-stream")
            var text = ""
            for try await part in response.body {
                text += String(buffer: part)
                if text.contains("\"more\":4}") { break }
            }
            #expect(text.contains("event: problems\ndata: [{"))
            #expect(text.contains("id: 17\nevent: skipped\ndata: {\"count\":2}\n\n"))
            #expect(text.contains("id: 17\nevent: lines\ndata: {\"items\":[{"))
            #expect(text.contains("\"more\":4}"))
            #expect(!text.contains("event: counts"))
        }
        #expect(harness.lines.places.withLock { $0 } == [9])
    }

    @Test func `events tell of another status, and end the first ones with the counts and the place`() async throws {
        harness.live.look(uptime: .seconds(1))
        try await harness.withPort { base in
            var request = HTTPClientRequest(url: base + "/v1/events?want=status,counts,caught,lines")
            request.headers.add(name: "authorization", value: bearer)
            let response = try await HTTPClient.shared.execute(request, timeout: .minutes(5))
            var text = ""
            var isChanged = false
            for try await part in response.body {
                text += String(buffer: part)
                guard text.contains("event: counts") else { continue }
                if text.contains("\"version\":2}") { break }
                guard !isChanged else { continue }
                isChanged = true
                // Seen in the next look; the same status again is not told.
                harness.administration.drillsHeld.withLock { $0 = [StandInAdministration.drill] }
                harness.live.look(uptime: .seconds(2))
                harness.live.look(uptime: .seconds(3))
            }
            let (status, caught) = ("data: {\"version\":1}\n\n", "data: {\"newest\":0}\n\n")
            #expect(text.contains("event: status\n\(status)event: caught\n\(caught)id: 23\nevent: counts\n"))
            #expect(text.components(separatedBy: "event: status").count == 3)
        }
    }

    @Test(arguments: ["want=everything", "want=", "q=wrong:"])
    func `a stream that makes no sense is refused`(query: String) async throws {
        let answer = try await harness.withPort { base in
            try await harness.ask("GET", base + "/v1/events?\(query)", token: bearer)
        }
        #expect(answer.status == 400)
    }
}
