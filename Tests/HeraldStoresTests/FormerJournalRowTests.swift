import HeraldMailbox
import HeraldModel
import Testing

@testable import HeraldStores

struct FormerJournalRowTests {
    /// The longest record that there can be, as earlier versions wrote it.
    static let record: [UInt8] = [
        0xFB, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01,
        0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0,
        0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 20, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF,
        5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0,
    ]
    private let event = JournalEvent(
        time: WallTime(milliseconds: -5),
        id: NotificationID(high: 0x0102_0304_0506_0708, low: .max),
        uniqueID: NotificationID(high: 3, low: 4),
        slot: Slot(device: DeviceNumber(.max), app: AppNumber(.max)),
        state: .replaced,
        replacement: NotificationID(high: 5, low: 6)
    )

    private func read(_ bytes: [UInt8]) -> (events: [JournalEvent], isWhole: Bool) {
        var events: [JournalEvent] = []
        let isWhole = bytes.withUnsafeBytes { FormerJournalRow.read($0) { events.append($0) } }
        return (events, isWhole)
    }

    @Test func `what earlier versions wrote is read`() {
        let record = FormerJournalRowTests.record
        #expect(read(record) == ([event], true))
        #expect(read(record + record) == ([event, event], true))
        #expect(read([]) == ([], true))
    }

    @Test func `without the flag for it there is no replacement, and one of zeros is one`() {
        var record = FormerJournalRowTests.record
        record[48] = 0
        #expect(read(record).events.map(\.replacement) == [nil])
        record[48] = 1
        for place in 56..<72 { record[place] = 0 }
        #expect(read(record).events.map(\.replacement) == [NotificationID(high: 0, low: 0)])
    }

    @Test(arguments: [
        (at: 49, value: 0),  // no such state
        (at: 49, value: 255),
        (at: 48, value: 2),  // a flag that does not exist
        (at: 50, value: 1),  // bytes that are always zero
        (at: 51, value: 255),
    ])
    func `a record that cannot have been written ends the row`(flip: (at: Int, value: UInt8)) {
        var record = FormerJournalRowTests.record
        record[flip.at] = flip.value
        #expect(read(FormerJournalRowTests.record + record + FormerJournalRowTests.record) == ([event], false))
    }

    @Test(arguments: [1, 71, 73, 143])
    func `nothing is read beyond the bytes`(count: Int) {
        let bytes = Array((FormerJournalRowTests.record + FormerJournalRowTests.record).prefix(count))
        #expect(read(bytes) == (Array(repeating: event, count: count / 72), false))
    }
}
