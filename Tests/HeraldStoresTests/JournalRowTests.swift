import HeraldMailbox
import HeraldModel
import Testing

@testable import HeraldStores

struct JournalRowTests {
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

    /// The events of one commit about a notification that replaces another.
    private static let usual = [
        event(.received, 2, at: 1000), event(.storedDeviceOffline, 2, at: 1003),
        event(.replaced, 1, at: 1003, replacement: 2),
    ]

    private func row(_ events: [JournalEvent]) -> [UInt8] {
        var row = JournalRow()
        for event in events { row.append(event) }
        return row.bytes
    }

    /// - Returns: nil if the row is damaged.
    private func read(_ row: [UInt8]) -> [JournalEvent]? {
        let (events, isWhole) = decoded(row)
        return isWhole ? events : nil
    }

    private func decoded(_ row: [UInt8]) -> (events: [JournalEvent], isWhole: Bool) {
        var events: [JournalEvent] = []
        let isWhole = row.withUnsafeBytes { JournalRow.read($0) { events.append($0) } }
        return (events, isWhole)
    }

    private func sealed(_ content: [UInt8]) -> [UInt8] {
        var sum = Checksum()
        content.withUnsafeBytes { sum.add($0) }
        return content + withUnsafeBytes(of: sum.value.littleEndian) { Array($0) }
    }

    @Test func `the stored form does not change`() {
        let id2: [UInt8] = [0x0A, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]
        let unique2: [UInt8] = [0x0B, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]
        let id1: [UInt8] = [0x0A, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]
        let unique1: [UInt8] = [0x0B, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]
        // Twice 1000 is 15 × 128 + 80; 300 is 256 + 44.
        let received = [1, 0b111, 0x80 | 80, 15, 44, 1, 0, 0, 0, 0, 0, 0, 2] + id2 + unique2
        let stored: [UInt8] = [10, 0, 6]
        let replaced = [20, 0b10110, 0] + id1 + unique1
        #expect(row(JournalRowTests.usual) == sealed(received + stored + replaced))
        #expect(received.count + stored.count + replaced.count == 83)
    }

    @Test func `events of any content and order are decoded as they were encoded`() {
        let lowest = Slot(device: DeviceNumber(1), app: AppNumber(0))
        let highest = Slot(device: DeviceNumber(.max - 1), app: AppNumber(.max))
        var events: [JournalEvent] = []
        for time in [0, -1, .max, .min, 5, 5, 1_800_000_000_000] as [Int64] {
            for slot in [lowest, highest, JournalRowTests.slot] {
                for number in [0, .max, 7] as [UInt64] {
                    events.append(JournalRowTests.event(.delivered, number, at: time, slot: slot))
                    events.append(
                        JournalRowTests.event(
                            .replaced,
                            number,
                            at: time,
                            slot: slot,
                            replacement: UInt64(events.count)
                        )
                    )
                    // Replaced by itself, by the notification of the event before, and by zeros.
                    events.append(JournalRowTests.event(.replaced, number, at: time, slot: slot, replacement: number))
                    events.append(JournalRowTests.event(.replaced, 9, at: time, slot: slot, replacement: number))
                    events.append(JournalRowTests.event(.replaced, 9, at: time, slot: slot, replacement: 0))
                }
            }
        }
        for state in JournalState.allCases { events.append(JournalRowTests.event(state, 3, at: 9)) }
        for count in [0, 1, .max] as [UInt64] {
            events.append(
                JournalEvent(
                    time: WallTime(milliseconds: 9),
                    id: NotificationID(high: 0x0A, low: count),
                    uniqueID: NotificationID(high: 0x0B, low: count),
                    recipient: .subscribers,
                    app: AppNumber(2),
                    state: .sentToSubscribers,
                    detail: .subscriberCount(count)
                )
            )
        }
        // One of the two identifiers is equal to that of the event before.
        let last = JournalRowTests.event(.received, 3, at: 9)
        events.append(
            JournalEvent(time: last.time, id: last.id, uniqueID: last.id, slot: Self.slot, state: .received)
        )
        events.append(
            JournalEvent(time: last.time, id: last.uniqueID, uniqueID: last.id, slot: Self.slot, state: .received)
        )
        #expect(read(row(events)) == events)
        for event in events { #expect(read(row([event])) == [event]) }
    }

    private static func received(_ number: UInt64, _ request: JournalRequest?) -> JournalEvent {
        JournalEvent(
            time: WallTime(milliseconds: 1000),
            id: NotificationID(high: 0x0A, low: number),
            uniqueID: NotificationID(high: 0x0B, low: number),
            slot: slot,
            state: .received,
            request: request
        )
    }

    private static func refused(
        _ number: UInt64,
        _ words: String,
        topic: String? = nil,
        isOfDevice: Bool = false,
        request: JournalRequest = JournalRequest()
    ) -> JournalEvent {
        JournalEvent(
            refused: JournalRefusal(reason: .badTopic, explanation: words, topic: topic, environment: .sandbox),
            id: NotificationID(high: 0x0A, low: number),
            device: isOfDevice ? slot.device : nil,
            app: nil,
            at: WallTime(milliseconds: 1000),
            request: request
        )
    }

    @Test func `the stored form of a request and its refusal does not change`() {
        let request = JournalRequest(
            sender: SenderNumber(300),
            pushType: .background,
            priority: .conserving,
            payloadBytes: 200
        )
        let content = row([Self.received(2, request), Self.refused(3, "ß", topic: "a.b", request: request)])
        let id3: [UInt8] = [0x0A, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]
        let nobody = [UInt8](repeating: 0xFF, count: 8) + [0]
        var refused: [UInt8] = [63, 0b1011, 0]
        refused += nobody
        refused += id3
        refused += [10, 1, 2, 0xC3, 0x9F, 3]
        refused += "a.b".utf8
        #expect(Array(content.dropLast(8).suffix(refused.count)) == refused)
        let facts: [UInt8] = [0xAC, 2, 0x22, 0xC8, 1]
        #expect(Array(content.dropLast(8 + refused.count).suffix(5)) == facts)
        // What is equal to the line before takes no room.
        let once = row([Self.refused(3, "ß")])
        #expect(row([Self.refused(3, "ß"), Self.refused(4, "ß")]).count == once.count + 3 + 16 + 1)
    }

    @Test func `every reason keeps its number`() {
        let codes = RefusalReason.allCases.map(\.storedCode)
        #expect(Set(codes).count == codes.count && !codes.contains(0))
        #expect(RefusalReason.badTopic.storedCode == 10 && RefusalReason.shutdown.storedCode == 42)
        for reason in RefusalReason.allCases { #expect(RefusalReason(storedCode: reason.storedCode) == reason) }
    }

    @Test func `requests and refusals of any order are decoded as they were encoded`() {
        var random = SystemRandomNumberGenerator()
        let words = ["", "x", String(repeating: "é", count: 200)]
        func request() -> JournalRequest {
            JournalRequest(
                sender: SenderNumber([0, 1, .max].randomElement(using: &random) ?? 0),
                pushType: (PushType.allCases + [nil]).randomElement(using: &random) ?? nil,
                priority: (Priority.allCases + [nil]).randomElement(using: &random) ?? nil,
                payloadBytes: [0, 1, 4096, .max].randomElement(using: &random) ?? 0
            )
        }
        for _ in 0..<200 {
            let events = (0..<20).map { number -> JournalEvent in
                let number = UInt64(number / 3)
                switch Int.random(in: 0..<6, using: &random) {
                case 0: return Self.received(number, nil)
                case 1, 2: return Self.received(number, request())
                case 3: return Self.event(.replaced, number, at: 999, replacement: number + 1)
                default:
                    return Self.refused(
                        number,
                        words.randomElement(using: &random) ?? "",
                        topic: [nil, "com.example.app"].randomElement(using: &random) ?? nil,
                        isOfDevice: Bool.random(using: &random),
                        request: request()
                    )
                }
            }
            #expect(read(row(events)) == events)
        }
    }

    @Test func `any line has push type and priority, which take no room while they stay the same`() {
        let alert = JournalTraits(pushType: .alert, priority: .immediate)
        let silent = JournalTraits(pushType: .background, priority: .low)
        func lines(_ traits: [JournalTraits]) -> [JournalEvent] {
            traits.map { traits in
                JournalEvent(
                    time: WallTime(milliseconds: 5),
                    id: NotificationID(high: 1, low: 2),
                    uniqueID: NotificationID(high: 3, low: 4),
                    slot: Self.slot,
                    state: .delivered,
                    traits: traits
                )
            }
        }
        for traits in [[alert, silent, .none, alert, alert], [.none, silent, silent]] {
            let lines = lines(traits)
            #expect(read(row(lines)) == lines && lines.map(\.traits) == traits)
        }
        #expect(row(lines([alert, alert])).count == row(lines([alert])).count + 3)
        #expect(row(lines([alert, silent])).count == row(lines([alert])).count + 4)
    }

    @Test func `the words of a refusal are cut between characters`() {
        #expect(Self.refused(1, String(repeating: "é", count: 200)).refusal?.explanation.utf8.count == 300)
        #expect(Self.refused(1, "a" + String(repeating: "é", count: 200)).refusal?.explanation.utf8.count == 299)
    }

    @Test func `a row has the number of its events, and their first and last time`() {
        var row = JournalRow()
        for event in JournalRowTests.usual.reversed() { row.append(event) }
        #expect(row.count == 3 && row.firstTime == 1000 && row.lastTime == 1003)
        #expect(row.count < JournalRow.eventLimit)
        for _ in 3..<JournalRow.eventLimit { row.append(JournalRowTests.usual[0]) }
        #expect(row.count == JournalRow.eventLimit)
        #expect(read(row.bytes)?.count == 4096)
    }

    @Test func `a row with changed, missing or surplus bytes gives no event`() {
        let whole = row(JournalRowTests.usual)
        func givesNothing(_ row: [UInt8]) -> Bool {
            let (events, isWhole) = decoded(row)
            return events.isEmpty && !isWhole
        }
        for index in whole.indices {
            for bit in 0..<8 {
                var damaged = whole
                damaged[index] ^= 1 << UInt8(bit)
                #expect(givesNothing(damaged))
            }
            #expect(givesNothing(Array(whole.prefix(index))))
            #expect(givesNothing(Array(whole.suffix(index))))
        }
        #expect(givesNothing(whole + [0]))
        #expect(givesNothing(whole + whole))
        #expect(givesNothing(sealed([])))
    }

    private static let slotBytes: [UInt8] = [1, 0, 0, 0, 0, 0, 0, 0, 1]
    private static let ids = [UInt8](repeating: 0, count: 32)

    @Test(
        arguments: [
            [1, 0b111, 0] + slotBytes.dropLast(),  // ends within the slot
            [0, 0b111, 0] + slotBytes + ids,  // no such state
            [10, 0b10_0111, 0] + slotBytes + ids + [1],  // a sender of a line that has none
            [1, 0b10_0111, 0] + slotBytes + ids + [1],  // a sender without the rest of its request
            [1, 0b1110_0111, 0] + slotBytes + ids + [0x80, 0x80, 4, 0, 0],  // a sender of 17 bits
            [1, 0b1110_0111, 0] + slotBytes + ids + [1, 0xC, 0],  // no such push type
            [1, 0b1110_0111, 0] + slotBytes + ids + [1, 0x40, 0],  // no such priority
            [1, 0b1110_0111, 0] + slotBytes + ids + [1, 0xFF, 0],  // a request that is none
            [1, 0b1110_0111, 0] + slotBytes + ids + [1, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F],  // 33 bits
            [63, 0b1111, 0] + slotBytes + ids,  // without its refusal
            [63, 0b1111, 0] + slotBytes + ids + [0],  // the refusal of the line before, which is none
            [63, 0b1111, 0] + slotBytes + ids + [200, 0, 0, 0],  // no such reason
            [63, 0b1111, 0] + slotBytes + ids + [1, 2, 0, 0],  // no such environment
            [63, 0b1111, 0] + slotBytes + ids + [1, 0, 2, 65],  // ends within the explanation
            [63, 0b1111, 0] + slotBytes + ids + [1, 0, 1, 0xFF, 0],  // not UTF-8
            [1, 0b110, 0] + ids,  // the first event without a slot
            [1, 0b101, 0] + slotBytes + ids.prefix(16),  // without an identifier
            [20, 0b1_0111, 0] + slotBytes + ids,  // without a replacement
            [20, 0b1111, 0] + slotBytes + ids + ids.prefix(15),  // ends within the replacement
            [1, 0b111, 0] + slotBytes.dropLast() + [0xFF, 0xFF, 0xFF, 0xFF, 0x1F] + ids,  // an app of 33 bits
            [1, 0b111] + [UInt8](repeating: 0xFF, count: 9) + [2] + slotBytes + ids,  // 65 bits
            [1, 0b111] + [UInt8](repeating: 0xFF, count: 10) + slotBytes + ids,
        ] as [[UInt8]]
    )
    func `invalid events are refused, even with a right checksum`(content: [UInt8]) {
        #expect(read(sealed(content)) == nil)
    }

    private func mayContain(_ id: NotificationID, _ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { JournalRow.mayContain(id, $0) }
    }

    @Test func `a row may contain its identifiers and devices, and no other`() {
        let bytes = row(JournalRowTests.usual)
        bytes.withUnsafeBytes {
            #expect(JournalRow.mayContain(JournalRowTests.slot.device, $0))
            #expect(!JournalRow.mayContain(DeviceNumber(301), $0))
        }
        for event in JournalRowTests.usual {
            #expect(mayContain(event.id, bytes) && mayContain(event.uniqueID, bytes))
        }
        #expect(!mayContain(NotificationID(high: 0x0A, low: 3), bytes))
    }

    @Test func `an identifier is found at any offset, also after its own first bytes`() {
        let id = NotificationID(high: 0x0101_0101_0101_0101, low: 0x0201_0101_0101_0101)
        let pattern = [UInt8](repeating: 1, count: 15) + [2]
        for before in 0..<40 {
            let bytes = [UInt8](repeating: 1, count: before) + pattern
            #expect(mayContain(id, bytes) && mayContain(id, bytes + [0]))
            #expect(!mayContain(id, bytes.dropLast()))
        }
        #expect(!mayContain(id, []))
    }
}
