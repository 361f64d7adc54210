import Foundation
import HeraldModel
import Testing

@testable import HeraldConsole

/// A journal with one notification.
struct StandInJournal: JournalSearching {
    static let known = NotificationID(high: 1, low: 2)

    func search(_ request: JournalSearchRequest) async throws -> JournalSearchAnswer {
        _ = try JournalSearchText(request.text, now: WallTime(seconds: 0))
        return JournalSearchAnswer(
            items: Array(repeating: StandInAdministration.entry, count: min(request.limit ?? 100, 2)),
            cursor: nil,
            complete: true,
            searchedBackTo: nil,
            tookMS: 1,
            missingNodes: []
        )
    }

    func life(of id: NotificationID, until goal: JournalLife.Goal, wait: Duration) async throws -> JournalLife? {
        id == Self.known ? JournalLife(id, JournalAnswer([StandInAdministration.entry])) : nil
    }
}

struct JournalRoutesTests {
    private let harness = ConsoleHarness()

    @Test func `a search is answered with null for what is absent`() async throws {
        let body = #"{"q":"state:stored","limit":1,"after":"-2h"}"#
        let answer = try await harness.withSocket { base in
            try await harness.ask("POST", "\(base)/v1/journal/search", body: body)
        }
        #expect(answer.status == 200)
        #expect(answer.body.contains(#""cursor":null"#) && answer.body.contains(#""searched_back_to":null"#))
        let page = try answer.decode(JournalSearchAnswer.self)
        #expect(page.items == [StandInAdministration.entry] && page.complete)
    }

    @Test(arguments: [
        #"{"q":"state:gone"}"#, #"{"limit":0}"#, #"{"limit":1001}"#, #"{"after":"soon"}"#, #"{"q":7}"#, "[]", "",
    ])
    func `a search that makes no sense is refused`(body: String) async throws {
        let answer = try await harness.withSocket { base in
            try await harness.ask("POST", "\(base)/v1/journal/search", body: body)
        }
        #expect(answer.status == 400 && answer.body.contains("error"))
    }

    @Test func `a life has its lines in words`() async throws {
        let answer = try await harness.withSocket { base in
            try await harness.ask("GET", "\(base)/v1/journal/\(StandInJournal.known)?wait=1&until=final")
        }
        let life = try answer.decode(JournalLife.self)
        #expect(life.lines == [StandInAdministration.entry] && life.state == "stored" && !life.final)
        #expect(life.words.map(\.words) == ["It waits for the device, which is not connected."])
        #expect(!life.has(.delivered) && !life.has(.final))
    }

    @Test(arguments: [
        ("00000000-0000-0001-0000-000000000003", 404), ("7", 400),
        ("00000000-0000-0001-0000-000000000002?wait=61", 400), ("00000000-0000-0001-0000-000000000002?wait=x", 400),
        ("00000000-0000-0001-0000-000000000002?until=read", 400),
    ])
    func `a life that cannot be told is refused`(path: String, status: UInt) async throws {
        let answer = try await harness.withSocket { base in
            try await harness.ask("GET", "\(base)/v1/journal/\(path)")
        }
        #expect(answer.status == status && answer.body.contains("error"))
    }
}
