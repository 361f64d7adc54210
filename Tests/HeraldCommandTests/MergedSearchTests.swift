import HeraldConsole
import HeraldMailbox
import HeraldModel
import HeraldWeb
import Testing

@testable import HeraldCommand
@testable import HeraldService

struct MergedSearchTests {
    private func page(_ times: [Int64], next: String?) -> NodeSearchPage {
        let items = times.map { time in
            let event = JournalEvent(
                time: WallTime(seconds: time),
                id: NotificationID(high: 1, low: UInt64(time)),
                uniqueID: NotificationID(high: 1, low: UInt64(time)),
                slot: Slot(device: DeviceNumber(1), app: AppNumber(1)),
                state: .received
            )
            return NodeSearchPage.Item(entry: JournalEntry(event, device: nil, app: nil), next: "\(time)")
        }
        return NodeSearchPage(
            items: items,
            next: next,
            searchedBackTo: times.last.map { WallTime(seconds: $0).rfc3339 }
        )
    }

    private func seconds(_ merged: MergedSearch) -> [Int64?] {
        merged.items.map { WallTime(rfc3339: $0.time)?.seconds }
    }

    @Test func `a page has the newest lines of all nodes, and goes on where each was left`() {
        let asked = SearchCursor(["a": "", "b": "", "c": "7", "d": ""])
        let pages = ["a": page([9, 6, 3], next: "1"), "b": page([8, 7], next: nil), "c": page([1], next: "0")]
        let merged = MergedSearch(pages, asked: asked, limit: 4)
        #expect(seconds(merged) == [9, 8, 7, 6])
        // The node d did not answer, and keeps its place.
        #expect(merged.cursor == SearchCursor(["a": "6", "c": "7", "d": ""]))
        #expect(merged.searchedBackTo == WallTime(seconds: 3).rfc3339)
    }

    @Test func `the last page has no cursor`() {
        let merged = MergedSearch(["": page([2, 1], next: nil)], asked: SearchCursor(["": ""]), limit: 10)
        #expect(seconds(merged) == [2, 1] && merged.cursor == nil && merged.searchedBackTo == nil)
    }

    @Test func `a cursor is read as it was written`() {
        for cursor in [SearchCursor(["": "123-4"]), SearchCursor(["a": "", "b-1": "5"])] {
            #expect(SearchCursor(cursor.description) == cursor)
        }
        for text in ["", "a", "a~b~c", "a~1.", String(repeating: "~", count: 9000)] {
            #expect(SearchCursor(text) == nil)
        }
    }

    @Test func `two searches run, six wait, and the ninth is refused`() async throws {
        let turns = SearchTurns()
        let (begun, begin) = AsyncStream.makeStream(of: Int.self)
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        let latch = Task { for await _ in ended {} }
        let most = SearchTurns.running + SearchTurns.waiting
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0...most {
                group.addTask {
                    do {
                        try await turns.run {
                            begin.yield(number)
                            await latch.value
                        }
                        return true
                    } catch let error as WebRefusal {
                        #expect(error.status == 503)
                        end.finish()
                        return false
                    }
                }
            }
            var results: [Bool] = []
            for try await result in group { results.append(result) }
            #expect(results.count { $0 } == most && results.count { !$0 } == 1)
        }
        begin.finish()
        var count = 0
        for await _ in begun { count += 1 }
        #expect(count == most)
    }
}
