import HeraldMailbox
import HeraldModel
import Testing

@testable import HeraldStores

struct JournalPageTests {
    private static let slot = Slot(device: DeviceNumber(300), app: AppNumber(2))

    private static func event(
        _ state: JournalState,
        _ number: UInt64,
        at time: Int64,
        slot: Slot = slot,
        replacement: UInt64? = nil
    ) -> JournalEvent {
        JournalEvent(
            time: WallTime(milliseconds: time),
            id: NotificationID(high: 0x0A, low: number),
            uniqueID: NotificationID(high: 0x0B, low: number),
            slot: slot,
            state: state,
            replacement: replacement.map { NotificationID(high: 0x0A, low: $0) }
        )
    }

    /// What one commit does about a notification that replaces another.
    private static let usual = [
        event(.received, 2, at: 1000), event(.storedDeviceOffline, 2, at: 1003),
        event(.replaced, 1, at: 1003, replacement: 2),
    ]

    private func row(_ events: [JournalEvent]) -> [UInt8] {
        var page = JournalPage()
        for event in events { page.append(event) }
        return page.row
    }

    /// - Returns: nil if it is not what was written.
    private func read(_ row: [UInt8]) -> [JournalEvent]? {
        var events: [JournalEvent] = []
        let isWhole = row.withUnsafeBytes { JournalPage.read($0) { events.append($0) } }
        return isWhole ? events : nil
    }

    private func sealed(_ lines: [UInt8]) -> [UInt8] {
        var sum = Checksum()
        lines.withUnsafeBytes { sum.add($0) }
        return lines + withUnsafeBytes(of: sum.value.littleEndian) { Array($0) }
    }

    @Test func `the form on disk never changes`() {
        let id2: [UInt8] = [0x0A, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]
        let unique2: [UInt8] = [0x0B, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]
        let id1: [UInt8] = [0x0A, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]
        let unique1: [UInt8] = [0x0B, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]
        // Twice 1000 is 15 × 128 + 80; 300 is 2 × 128 + 44.
        let received = [1, 0b111, 0x80 | 80, 15, 0x80 | 44, 2, 2] + id2 + unique2
        let stored: [UInt8] = [10, 0, 6]
        let replaced = [20, 0b10110, 0] + id1 + unique1
        #expect(row(JournalPageTests.usual) == sealed(received + stored + replaced))
        #expect(received.count + stored.count + replaced.count == 77)
    }

    @Test func `lines read back, whatever they say and follow`() {
        let lowest = Slot(device: DeviceNumber(0), app: AppNumber(0))
        let highest = Slot(device: DeviceNumber(.max), app: AppNumber(.max))
        var events: [JournalEvent] = []
        for time in [0, -1, .max, .min, 5, 5, 1_800_000_000_000] as [Int64] {
            for slot in [lowest, highest, JournalPageTests.slot] {
                for number in [0, .max, 7] as [UInt64] {
                    events.append(JournalPageTests.event(.delivered, number, at: time, slot: slot))
                    events.append(
                        JournalPageTests.event(
                            .replaced,
                            number,
                            at: time,
                            slot: slot,
                            replacement: UInt64(events.count)
                        )
                    )
                    // By itself, by what the line before is about, and by zeros.
                    events.append(JournalPageTests.event(.replaced, number, at: time, slot: slot, replacement: number))
                    events.append(JournalPageTests.event(.replaced, 9, at: time, slot: slot, replacement: number))
                    events.append(JournalPageTests.event(.replaced, 9, at: time, slot: slot, replacement: 0))
                }
            }
        }
        for state in JournalState.allCases { events.append(JournalPageTests.event(state, 3, at: 9)) }
        // Half of what names a notification is as before.
        let last = JournalPageTests.event(.received, 3, at: 9)
        events.append(
            JournalEvent(time: last.time, id: last.id, uniqueID: last.id, slot: last.slot, state: .received)
        )
        events.append(
            JournalEvent(time: last.time, id: last.uniqueID, uniqueID: last.id, slot: last.slot, state: .received)
        )
        #expect(read(row(events)) == events)
        for event in events { #expect(read(row([event])) == [event]) }
    }

    @Test func `a page knows how many lines it has, and from when to when`() {
        var page = JournalPage()
        for event in JournalPageTests.usual.reversed() { page.append(event) }
        #expect(page.count == 3 && page.firstTime == 1000 && page.lastTime == 1003)
        #expect(!page.isFull)
        for _ in 3..<JournalPage.lineLimit { page.append(JournalPageTests.usual[0]) }
        #expect(page.isFull)
        #expect(read(page.row)?.count == 4096)
    }

    @Test func `a page in which anything is changed, missing or too much gives no line`() {
        let whole = row(JournalPageTests.usual)
        for place in whole.indices {
            for bit in 0..<8 {
                var damaged = whole
                damaged[place] ^= 1 << UInt8(bit)
                #expect(read(damaged) == nil)
            }
            #expect(read(Array(whole.prefix(place))) == nil)
            #expect(read(Array(whole.suffix(place))) == nil)
        }
        #expect(read(whole + [0]) == nil)
        #expect(read(whole + whole) == nil)
        #expect(read(sealed([])) == nil)
    }

    @Test(
        arguments: [
            [1, 0b111, 0, 1],  // ends within the slot
            [0, 0b111, 0, 1, 1] + [UInt8](repeating: 0, count: 32),  // no such state
            [1, 0b10_0111, 0, 1, 1] + [UInt8](repeating: 0, count: 32),  // no such part
            [1, 0b110, 0] + [UInt8](repeating: 0, count: 32),  // nothing before it has a slot
            [1, 0b101, 0, 1, 1] + [UInt8](repeating: 0, count: 16),  // nor an identifier
            [20, 0b1_0111, 0, 1, 1] + [UInt8](repeating: 0, count: 32),  // nor a replacement
            [20, 0b1111, 0, 1, 1] + [UInt8](repeating: 0, count: 47),  // ends within the replacement
            [1, 0b111, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F] + [UInt8](repeating: 0, count: 32),  // app of 33 bits
            [1, 0b111, 0] + [UInt8](repeating: 0xFF, count: 9) + [2, 1] + [UInt8](repeating: 0, count: 32),  // 65 bits
            [1, 0b111, 0] + [UInt8](repeating: 0xFF, count: 10) + [1, 1] + [UInt8](repeating: 0, count: 32),
        ] as [[UInt8]]
    )
    func `lines that cannot have been written are not believed, even with a checksum`(lines: [UInt8]) {
        #expect(read(sealed(lines)) == nil)
    }
}
