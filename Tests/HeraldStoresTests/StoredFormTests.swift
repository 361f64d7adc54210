import HeraldMailbox
import Testing

@testable import HeraldModel
@testable import HeraldStores

/// The stored form of rows, which is part of the format.
struct StoredFormTests {
    @Test func `every push type keeps its number`() {
        let codes = Dictionary(uniqueKeysWithValues: PushType.allCases.map { ($0.rawValue, $0.storedCode) })
        #expect(
            codes == [
                "alert": 1, "background": 2, "complication": 3, "controls": 4, "fileprovider": 5, "liveactivity": 6,
                "location": 7, "mdm": 8, "pushtotalk": 9, "voip": 10, "widgets": 11,
            ]
        )
        for pushType in PushType.allCases { #expect(PushType(storedCode: pushType.storedCode) == pushType) }
        #expect(PushType(storedCode: 0) == nil)
        #expect(PushType(storedCode: 12) == nil)
    }

    @Test func `the checksum does not change, and detects every flipped bit`() {
        func sum(_ bytes: [UInt8]) -> UInt64 {
            var sum = Checksum()
            bytes.withUnsafeBytes { sum.add($0) }
            return sum.value
        }
        #expect(sum([]) == 0x873E_6848_2833_18EB)
        let text = Array("a payload of some length".utf8)
        for index in text.indices {
            for bit in 0..<8 {
                var flipped = text
                flipped[index] ^= 1 << UInt8(bit)
                #expect(sum(flipped) != sum(text))
            }
        }
        #expect(sum([0]) != sum([0, 0]))
        #expect(sum([1]) != sum([0, 1]))
    }

    private static let notification = Notification(
        id: NotificationID(high: 3, low: 4),
        uniqueID: NotificationID(high: 5, low: 6),
        slot: Slot(device: DeviceNumber(1), app: AppNumber(0x0102_0304)),
        received: WallTime(milliseconds: 7),
        storedUntil: WallTime(milliseconds: 8),
        priority: .conserving,
        pushType: .voip,
        collapseID: CollapseID("täg"),
        payload: [0x7B, 0x7D]
    )

    @Test func `the stored form of a header does not change`() {
        var packer = SegmentBuilder()
        packer.append(StoredFormTests.notification, sequence: 9)
        let checksum: UInt64 = 3_445_750_259_317_135_601
        let length: UInt64 = 0x6C52_2753_0000_0002
        #expect(
            packer.headers == [9, 1, 0x0102_0304_0004_050A, 3, 4, 5, 6, 7, 8, length, checksum].map(\.littleEndian)
        )
        #expect(packer.bodies == Array("täg{}".utf8))
        packer.headers.withUnsafeBytes { headers in
            packer.bodies.withUnsafeBytes { bodies in
                let found = Segment(headers: headers, bodies: bodies)?.notification(0)
                #expect(found?.collapseID?.text == "täg" && found?.payload == [0x7B, 0x7D])
                #expect(found?.storedUntil == WallTime(milliseconds: 8) && found?.priority == .conserving)
            }
        }
    }

    @Test func `a collapse identifier that no device must get is left out, and the notification stays`() {
        let stored = Notification(
            id: NotificationID(high: 3, low: 4),
            uniqueID: NotificationID(high: 5, low: 6),
            slot: Slot(device: DeviceNumber(1), app: AppNumber(1)),
            received: WallTime(milliseconds: 7),
            storedUntil: nil,
            priority: .immediate,
            pushType: .alert,
            collapseID: CollapseID(text: "a\tb"),
            payload: [0x7B, 0x7D]
        )
        var packer = SegmentBuilder()
        packer.append(stored, sequence: 9)
        packer.headers.withUnsafeBytes { headers in
            packer.bodies.withUnsafeBytes { bodies in
                let found = Segment(headers: headers, bodies: bodies)?.notification(0)
                #expect(found?.payload == [0x7B, 0x7D] && found?.collapseID == nil)
            }
        }
    }

    @Test func `every flipped bit of a segment is detected`() {
        var packer = SegmentBuilder()
        packer.append(StoredFormTests.notification, sequence: 9)
        let headers = packer.headers.withUnsafeBytes { Array($0) }
        for index in 0..<headers.count + packer.bodies.count {
            for bit in 0..<8 {
                var all = headers + packer.bodies
                all[index] ^= 1 << UInt8(bit)
                all.withUnsafeBytes { all in
                    let segment = Segment(
                        headers: UnsafeRawBufferPointer(rebasing: all[..<headers.count]),
                        bodies: UnsafeRawBufferPointer(rebasing: all[headers.count...])
                    )
                    #expect(segment?.notification(0) == nil)
                }
            }
        }
    }

    @Test func `every flipped bit of a header is detected, and both neighbours are found`() {
        var packer = SegmentBuilder()
        for sequence in 1...3 as ClosedRange<UInt64> {
            packer.append(StoredFormTests.notification, sequence: sequence)
        }
        let headers = packer.headers.withUnsafeBytes { Array($0) }
        for index in NotificationHeader.byteCount..<2 * NotificationHeader.byteCount {
            for bit in 0..<8 {
                var damaged = headers
                damaged[index] ^= 1 << UInt8(bit)
                damaged.withUnsafeBytes { headers in
                    packer.bodies.withUnsafeBytes { bodies in
                        let segment = Segment(headers: headers, bodies: bodies)
                        #expect((0..<3).map { segment?.header($0).isValid } == [true, false, true])
                        #expect((0..<3).map { segment?.notification($0) != nil } == [true, false, true])
                    }
                }
            }
        }
    }

    @Test func `the stored form of tombstones does not change, and every flipped bit is detected`() {
        let tombstones = Tombstones([
            SegmentPosition(segment: 77, index: 0, count: 48), SegmentPosition(segment: 77, index: 47, count: 48),
        ])
        let stored = tombstones.stored(for: 77)
        #expect(stored == -2_417_447_837_479_469_055)
        #expect(Tombstones(stored: stored, for: 77) == tombstones)
        #expect(Tombstones(stored: stored, for: 78) == nil)
        for bit in 0..<64 { #expect(Tombstones(stored: stored ^ 1 << bit, for: 77) == nil) }
    }

    @Test func `a position has its parts, and positions of a segment are neighbours`() {
        for segment in [1, 2, SegmentPosition.numbers.upperBound] {
            for (index, count) in [(0, 1), (47, 48), (3, 9)] {
                let position = SegmentPosition(segment: segment, index: index, count: count)
                #expect(position.segment == segment && position.index == index && position.count == count)
            }
        }
        #expect(SegmentPosition(segment: 1, index: 47, count: 48) < SegmentPosition(segment: 2, index: 0, count: 1))
    }
}
