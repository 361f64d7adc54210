import GRDB
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Testing

@testable import HeraldStores

struct JournalSearchTests {
    @Test func `the journal has its first and last time, and says since when it has all`() async throws {
        let temporary = try TemporaryFolder()
        let store = try SQLiteStore(
            path: temporary.path + "/store.sqlite",
            configuration: SQLiteFixture.configuration,
            clock: ManualClock(),
            logger: .silent,
            onFatal: { _ in }
        )
        #expect(try await store.journalSpan() == nil)
        let lines = Self.lines(0..<30)
        for part in [lines[..<10], lines[10...]] {
            store.record(Array(part))
            _ = try await store.lines(matching: .device(DeviceNumber(1)), limit: 1)
        }
        let span = try #require(try await store.journalSpan())
        #expect(span.first == lines[..<10].map(\.time).min())
        #expect(span.last == lines[10...].map(\.time).max())
        #expect(try await store.journalCompleteSince() == nil)
        try await store.trim(before: WallTime(milliseconds: 0), maximumBytes: 100)
        let kept = try #require(try await store.journalSpan())
        #expect(kept.first == lines[10...].map(\.time).min())
        #expect(try await store.journalCompleteSince() == kept.first)
        await store.close()
    }

    /// Lines of random content; explanations make them long, so that few fill a chunk.
    private static func lines(_ numbers: Range<UInt64>) -> [JournalEvent] {
        var random = SystemRandomNumberGenerator()
        let reasons = RefusalReason.allCases
        return numbers.map { number in
            let slot = Slot(device: DeviceNumber(number % 1000 + 1), app: AppNumber(UInt32(number % 7) + 1))
            let time = WallTime(milliseconds: 1_000_000 + Int64(number) * 10 + Int64.random(in: -500...500))
            let id = NotificationID(high: 7, low: number / 2)
            guard number % 3 != 1 else {
                let states = JournalState.allCases.filter { !$0.isOfRequest }
                return JournalEvent(
                    time: time,
                    id: id,
                    uniqueID: NotificationID(high: 8, low: number / 2),
                    slot: slot,
                    state: states[Int(number) % states.count]
                )
            }
            let words = (0..<18).map { _ in String(random.next(), radix: 16) }.joined()
            return JournalEvent(
                refused: JournalRefusal(
                    reason: reasons[Int(number / 3) % reasons.count],
                    explanation: words,
                    topic: number % 5 == 0 ? "com.example.unknown\(number % 2)" : nil,
                    environment: .production
                ),
                id: id,
                device: number % 5 == 0 ? nil : slot.device,
                app: nil,
                at: time,
                request: JournalRequest(
                    sender: SenderNumber(UInt16(number % 9)),
                    pushType: .alert,
                    priority: .immediate
                )
            )
        }
    }

    /// Three full chunks and an open one.
    private static func filled(_ fixture: SQLiteFixture) async throws -> [JournalEvent] {
        var all: [JournalEvent] = []
        var position: Int64 = 0
        while position < JournalDigest.start(of: 3) {
            let next = lines(UInt64(all.count)..<UInt64(all.count + 2000))
            fixture.sqlite.record(next)
            all += next
            position = try await fixture.sqlite.change { database, _ in
                try Int64.fetchOne(database, sql: "SELECT max(position) FROM journal") ?? 0
            }
        }
        return all
    }

    private static func filters(_ count: UInt64) -> [JournalFilter] {
        func filter(_ change: (inout JournalFilter) -> Void) -> JournalFilter {
            var filter = JournalFilter()
            change(&filter)
            return filter
        }
        let middle = count / 4
        return [
            filter { _ in },
            filter { $0.ids.add([NotificationID(high: 7, low: 3)]) },
            filter { $0.ids.add([NotificationID(high: 7, low: middle)]) },
            filter { $0.ids.add([NotificationID(high: 8, low: middle), NotificationID(high: 8, low: 9)]) },
            filter { $0.ids.add([NotificationID(high: 9, low: middle)]) },
            filter { $0.devices.add([DeviceNumber(5)]) },
            filter { $0.devices.add([DeviceNumber(100_000)]) },
            filter { $0.slots.add([Slot(device: DeviceNumber(1), app: AppNumber(1))]) },
            filter { $0.states.add([.delivered, .replaced]) },
            filter { $0.states.add([.refusedByService], isUnwanted: true) },
            filter { $0.topics.add([.app(AppNumber(3)), .name("com.example.unknown1")]) },
            filter {
                $0.topics.add([.app(AppNumber(3))], isUnwanted: true)
                $0.senders.add([SenderNumber(3)])
            },
            filter { $0.reasons.add([.refusal(.topicDisallowed)]) },
            filter {
                $0.after = WallTime(milliseconds: 1_000_000 + Int64(middle) * 10)
                $0.before = WallTime(milliseconds: 1_010_000 + Int64(middle) * 10)
            },
        ]
    }

    /// All pages of a search.
    private func found(
        _ filter: JournalFilter,
        in store: SQLiteStore,
        limit: Int = 9_999
    ) async throws -> [JournalEvent] {
        var events: [JournalEvent] = []
        var cursor: JournalCursor?
        repeat {
            let page = try await store.search(filter, from: cursor, limit: limit, within: .milliseconds(50))
            #expect(page.lines.count <= limit)
            events += page.lines.map(\.event)
            cursor = page.next
            // The cursor goes through texts.
            if let text = cursor?.description { #expect(JournalCursor(text) == cursor) }
        } while cursor != nil
        return events
    }

    /// The chunks that a search for all its lines reads.
    private func chunksRead(in store: SQLiteStore, _ change: (inout JournalFilter) -> Void) async throws -> Int {
        var filter = JournalFilter()
        change(&filter)
        let start = JournalSearch(filter, limit: 10_000)
        return try await store.readers.read { database in
            var search = start
            while !search.isFinished { try search.step(database) }
            return search.chunksRead
        }
    }

    /// One test, because to fill chunks takes a second.
    @Test func `a search finds what a plain scan finds, and reads few chunks, also with damaged digests`() async throws
    {
        let fixture = try SQLiteFixture()
        let all = try await Self.filled(fixture)
        let filters = Self.filters(UInt64(all.count))
        func check(_ filters: some Sequence<JournalFilter>) async throws {
            for filter in filters {
                let expected = all.reversed().filter(filter.includes)
                let events = try await found(filter, in: fixture.sqlite)
                #expect(events.count == expected.count && events == expected)
            }
        }
        let digests = try await fixture.sqlite.change { database, _ in
            try Int.fetchOne(database, sql: "SELECT count(*) FROM journal_digest") ?? 0
        }
        #expect(digests == 3 * JournalDigest.sliceCount)
        try await check(filters)
        // The chunk of the line, and the open one, which has no digest yet; perhaps one more by chance.
        let store = fixture.sqlite
        #expect(try await chunksRead(in: store) { $0.ids.add([all[10].id]) } <= 3)
        #expect(try await chunksRead(in: store) { $0.ids.add([NotificationID(high: 99, low: 99)]) } <= 2)
        #expect(try await chunksRead(in: store) { $0.topics.add([.app(AppNumber(99))]) } == 1)
        #expect(try await chunksRead(in: store) { $0.before = WallTime(milliseconds: 1_001_000) } == 2)

        // The digest of the open chunk is made again.
        try await fixture.restart()
        try await check(filters[1..<4])
        try await fixture.sqlite.change { database, _ in
            try database.execute(sql: "UPDATE journal_digest SET bits = zeroblob(4040) WHERE number % 2 = 0")
            try database.execute(sql: "DELETE FROM journal_digest WHERE number >= \(2 << 6)")
        }
        try await check(filters[1..<8])

        // Digests go with the rows of their chunk.
        try await fixture.sqlite.trim(before: WallTime(milliseconds: 0), maximumBytes: 3 << 20)
        let oldest = try await fixture.sqlite.change { database, _ in
            (
                try Int64.fetchOne(database, sql: "SELECT min(position) FROM journal") ?? 0,
                try Int64.fetchOne(database, sql: "SELECT min(number) FROM journal_digest") ?? .max
            )
        }
        #expect(oldest.1 >= JournalDigest.rowNumber(JournalDigest.chunk(of: oldest.0) - 1, slice: 0))
        await fixture.close()
    }

    @Test func `a page ends within a row, and the next goes on there`() async throws {
        let fixture = try SQLiteFixture()
        let all = Self.lines(0..<1000)
        fixture.sqlite.record(all)
        for limit in [1, 7, 999, 1000, 1001] {
            let first = try await fixture.sqlite.search(JournalFilter(), limit: limit, within: .patience)
            #expect(first.lines.map(\.event) == Array(all.reversed().prefix(limit)))
        }
        #expect(try await found(JournalFilter(), in: fixture.sqlite, limit: 333) == all.reversed())
        for text in ["", "x", "-1", "5-", "5--1", "5-5000", "5-1-1"] { #expect(JournalCursor(text) == nil) }
        await fixture.close()
    }
}
