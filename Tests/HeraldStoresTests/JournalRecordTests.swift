import HeraldMailbox
import HeraldModel
import Testing

@testable import HeraldStores

struct JournalRecordTests {
    private let event = JournalEvent(
        time: WallTime(milliseconds: -5),
        id: NotificationID(high: 0x0102_0304_0506_0708, low: .max),
        uniqueID: NotificationID(high: 3, low: 4),
        slot: Slot(device: DeviceNumber(.max), app: AppNumber(.max)),
        state: .replaced,
        replacement: NotificationID(high: 5, low: 6)
    )

    private func bytes(_ events: [JournalEvent]) -> [UInt8] {
        var words: [UInt64] = []
        for event in events { JournalRecord.append(event, to: &words) }
        return words.withUnsafeBytes { Array($0) }
    }

    private func read(_ bytes: [UInt8], at index: Int = 0) -> JournalEvent? {
        bytes.withUnsafeBytes { JournalRecord.read($0, at: index) }
    }

    @Test func `a record is 72 bytes, and reads back`() {
        let other = JournalEvent(
            time: WallTime(milliseconds: .max),
            id: NotificationID(high: 0, low: 0),
            uniqueID: NotificationID(high: .max, low: .max),
            slot: Slot(device: DeviceNumber(0), app: AppNumber(0)),
            state: .received
        )
        let bytes = bytes([event, other])
        #expect(bytes.count == 144)
        #expect(read(bytes, at: 0) == event)
        #expect(read(bytes, at: 1) == other)
    }

    @Test func `a replacement of zeros is not the same as none`() {
        let zero = JournalEvent(
            time: event.time,
            id: event.id,
            uniqueID: event.uniqueID,
            slot: event.slot,
            state: .replaced,
            replacement: NotificationID(high: 0, low: 0)
        )
        #expect(read(bytes([zero])) == zero)
    }

    @Test func `the form on disk never changes`() {
        let golden: [UInt8] = [
            0xFB, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01,
            0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0,
            0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 20, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF,
            5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0,
        ]
        #expect(bytes([event]) == golden)
        #expect(JournalRecord.fingerprint(NotificationID(high: 1, low: 0)) == 0x9E37_79B9_7F4A_7C15)
    }

    @Test(arguments: [
        (at: 49, value: 0),  // no such state
        (at: 49, value: 255),
        (at: 48, value: 2),  // a flag that does not exist
        (at: 50, value: 1),  // bytes that are always zero
        (at: 51, value: 255),
    ])
    func `a record that cannot have been written is not read`(flip: (at: Int, value: UInt8)) {
        var damaged = bytes([event])
        damaged[flip.at] = flip.value
        #expect(read(damaged) == nil)
    }

    @Test(arguments: [0, 1, 71, 73, 143])
    func `nothing is read beyond the bytes`(count: Int) {
        let bytes = Array((bytes([event]) + bytes([event])).prefix(count))
        #expect((read(bytes, at: 0) != nil) == (count >= 72))
        #expect(read(bytes, at: 1) == nil)
        #expect(read(bytes, at: -1) == nil)
        #expect(read(bytes, at: .max) == nil)
    }
}
