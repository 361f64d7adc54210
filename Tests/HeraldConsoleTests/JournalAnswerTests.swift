import HeraldConsole
import HeraldMailbox
import HeraldModel
import Testing

/// The journal of several nodes.
@Suite struct JournalAnswerTests {
    private func line(_ milliseconds: Int64, _ node: String, _ state: JournalState = .received) -> JournalEntry {
        let event = JournalEvent(
            time: WallTime(milliseconds: 1_800_000_000_000 + milliseconds),
            id: NotificationID(high: 1, low: 2),
            uniqueID: NotificationID(high: 3, low: 4),
            slot: Slot(device: DeviceNumber(1), app: AppNumber(1)),
            state: state
        )
        return JournalEntry(event, device: nil, app: nil, node: node)
    }

    private func places(_ answer: JournalAnswer) -> [String] {
        answer.lines.map { "\($0.node ?? "") \($0.time.suffix(4))" }
    }

    @Test func `lines are merged by time, and those of one moment stay as they are`() {
        let answer = JournalAnswer(
            merging: [
                JournalAnswer([line(1, "a"), line(5, "a"), line(5, "a", .delivered)]),
                JournalAnswer([line(0, "b"), line(5, "b")]),
            ],
            missingNodes: [],
            limit: 10
        )
        #expect(places(answer) == ["b 000Z", "a 001Z", "a 005Z", "a 005Z", "b 005Z"])
        #expect(answer.lines.map(\.state)[2...3] == ["received", "delivered"])
        #expect(answer.completeSince == nil)
    }

    @Test func `the newest lines of all nodes are kept, and they are complete since the latest time of a node`() {
        let (ten, eleven) = ("2027-01-15T10:00:00.000Z", "2027-01-15T11:00:00.000Z")
        let answer = JournalAnswer(
            merging: [
                JournalAnswer([line(1, "a"), line(3, "a")], completeSince: ten),
                JournalAnswer([line(2, "b"), line(4, "b")], completeSince: eleven), JournalAnswer([]),
            ],
            missingNodes: ["d", "c"],
            limit: 2
        )
        #expect(places(answer) == ["a 003Z", "b 004Z"])
        #expect(answer.missingNodes == ["c", "d"] && answer.completeSince == eleven)
    }
}
