import ArgumentParser
import Foundation
import HeraldConsole
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldCommand
@testable import HeraldService

@Suite struct JournalTests {
    private func entry(_ state: JournalState, replacement: NotificationID? = nil, sandbox: Bool = false) -> JournalEntry
    {
        JournalEntry(
            JournalEvent(
                time: WallTime(seconds: 1_700_000_000),
                id: NotificationID(high: 1, low: 2),
                uniqueID: NotificationID(high: 3, low: 4),
                slot: Slot(device: DeviceNumber(1), app: AppNumber(1)),
                state: state,
                replacement: replacement
            ),
            device: DeviceID("kitchen"),
            app: Topic("com.example.chat").map { App(topic: $0, environment: sandbox ? .sandbox : .production) }
        )
    }

    @Test func `people read a table`() {
        let replacement = NotificationID(high: 5, low: 6)
        let lines = JournalText.lines([
            entry(.storedDeviceOffline), entry(.replaced, replacement: replacement), entry(.delivered, sandbox: true),
        ])
        #expect(lines.count == 4)
        #expect(lines[1].contains("stored (device offline)"))
        #expect(lines[2].contains("replaced by \(replacement)"))
        #expect(lines[3].hasSuffix("kitchen  com.example.chat (sandbox)"))
    }

    @Test(arguments: JournalState.allCases)
    func `every state has words, and a reason where it has one`(state: JournalState) {
        let entry = entry(state)
        #expect(!entry.state.isEmpty && !entry.state.contains("("))
        #expect(entry.reason.map { !$0.isEmpty && !$0.contains(")") } ?? true)
    }

    @Test(arguments: [
        [], ["nonsense:x"], ["--device", "a/b"], ["--topic", "a..b"], ["--state", "gone"], ["x", "--since", "soon"],
        ["--device", "a", "--limit", "0"], ["--device", "a", "--limit", "10001"], ["x", "--wait", "1s"],
        ["00000000-0000-0001-0000-000000000002", "--wait", "long"], ["x", "--until", "final"],
        ["00000000-0000-0001-0000-000000000002", "--wait", "1s", "--until", "read"], ["x", "--follow", "--json"],
    ])
    func `a question that makes no sense is wrong usage`(arguments: [String]) {
        let error = #expect(throws: (any Error).self) { try Journal.parse(arguments) }
        #expect(error.map { Journal.exitCode(for: $0) } == .validationFailure)
    }

    @Test func `following shows each line once, also one that comes late`() {
        let (first, second) = (entry(.received), entry(.delivered))
        var followed = FollowedLines([first])
        #expect(followed.term == "after:\"2023-11-14T22:13:18.000Z\"")
        #expect(followed.new([first, second]) == [second])
        #expect(followed.new([first, second]) == [])
    }

    @Test func `an explained line says what happened, and what to do`() {
        let lines = JournalText.explained([entry(.discardedExpired)])
        #expect(lines.count == 3)
        #expect(lines[0].contains("discarded (expired)") && lines[1].contains("time was over"))
    }

    @Test func `the journal of a folder without a service is read under its lock`() async throws {
        let temporary = try TemporaryFolder()
        let folder = try DataFolder.open(temporary.path, mayCreate: true)
        let lock = try await FolderLock.take(folder)
        let question = JournalQuestion.notification(NotificationID(high: 1, low: 2))
        #expect(try await JournalReader.entries(question, limit: 10, in: folder, under: lock).isEmpty)
    }
}

/// The journal of a cluster.
@Suite struct ClusterJournalTests {
    @Test(arguments: [
        JournalQuestion.notification(NotificationID(high: 1, low: 2)), DeviceID("kitchen").map { .device($0) },
        Topic("com.example.chat").map { .topic($0) },
    ])
    func `a query reaches another node as it is`(question: JournalQuestion?) throws {
        let question = try #require(question)
        let bytes = try JSONEncoder().encode(JournalInquiry(question, limit: 7))
        let inquiry = try JSONDecoder().decode(JournalInquiry.self, from: bytes)
        #expect(inquiry.question == question && inquiry.limit == 7)
    }

    @Test(arguments: [#"{"limit":7}"#, #"{"topic":"a..b","limit":7}"#, #"{"device":"a","limit":10001}"#])
    func `a query that makes no sense is not answered`(text: String) throws {
        #expect(try JSONDecoder().decode(JournalInquiry.self, from: Data(text.utf8)).question == nil)
    }
}
