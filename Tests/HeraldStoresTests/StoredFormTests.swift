import HeraldMailbox
import HeraldModel
import Testing

@testable import HeraldStores

/// What is on disk and must mean the same in every version.
struct StoredFormTests {
    @Test func `every kind has its own number, and keeps it`() {
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

    @Test func `the checksum of the same bytes is the same for ever, and of others another`() {
        func sum(_ bytes: [UInt8]) -> UInt64 {
            var sum = Checksum()
            bytes.withUnsafeBytes { sum.add($0) }
            return sum.value
        }
        #expect(sum([]) == 0x873E_6848_2833_18EB)
        let text = Array("a payload of some length".utf8)
        for place in text.indices {
            for bit in 0..<8 {
                var flipped = text
                flipped[place] ^= 1 << UInt8(bit)
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
        collapseID: "täg",
        payload: [0x7B, 0x7D]
    )

    @Test func `the head of a notification is the same for ever`() {
        var packer = BundlePacker()
        packer.append(StoredFormTests.notification, sequence: 9)
        let checksum: UInt64 = 3_445_750_259_317_135_601
        let length: UInt64 = 0x6C52_2753_0000_0002
        #expect(packer.heads == [9, 1, 0x0102_0304_0004_050A, 3, 4, 5, 6, 7, 8, length, checksum].map(\.littleEndian))
        #expect(packer.bodies == Array("täg{}".utf8))
        packer.heads.withUnsafeBytes { heads in
            packer.bodies.withUnsafeBytes { bodies in
                let found = Bundle(heads: heads, bodies: bodies)?.notification(0)
                #expect(found?.collapseID == "täg" && found?.payload == [0x7B, 0x7D])
                #expect(found?.storedUntil == WallTime(milliseconds: 8) && found?.priority == .conserving)
            }
        }
    }

    @Test func `whichever bit of a bundle is flipped, its notification is noticed to be damaged`() {
        var packer = BundlePacker()
        packer.append(StoredFormTests.notification, sequence: 9)
        let heads = packer.heads.withUnsafeBytes { Array($0) }
        for place in 0..<heads.count + packer.bodies.count {
            for bit in 0..<8 {
                var all = heads + packer.bodies
                all[place] ^= 1 << UInt8(bit)
                all.withUnsafeBytes { all in
                    let bundle = Bundle(
                        heads: UnsafeRawBufferPointer(rebasing: all[..<heads.count]),
                        bodies: UnsafeRawBufferPointer(rebasing: all[heads.count...])
                    )
                    #expect(bundle?.notification(0) == nil)
                }
            }
        }
    }

    @Test func `whichever bit of a head is flipped, it is noticed, and neighbours on both sides are found`() {
        var packer = BundlePacker()
        for sequence in 1...3 as ClosedRange<UInt64> {
            packer.append(StoredFormTests.notification, sequence: sequence)
        }
        let heads = packer.heads.withUnsafeBytes { Array($0) }
        for place in Head.byteCount..<2 * Head.byteCount {
            for bit in 0..<8 {
                var damaged = heads
                damaged[place] ^= 1 << UInt8(bit)
                damaged.withUnsafeBytes { heads in
                    packer.bodies.withUnsafeBytes { bodies in
                        let bundle = Bundle(heads: heads, bodies: bodies)
                        #expect((0..<3).map { bundle?.head($0).isSound } == [true, false, true])
                        #expect((0..<3).map { bundle?.notification($0) != nil } == [true, false, true])
                    }
                }
            }
        }
    }

    @Test func `the dead of a bundle are the same for ever, and a flipped bit of them is noticed`() {
        let dead = Members([Place(bundle: 77, position: 0, count: 48), Place(bundle: 77, position: 47, count: 48)])
        let stored = dead.stored(for: 77)
        #expect(stored == -2_417_447_837_479_469_055)
        #expect(Members(stored: stored, for: 77) == dead)
        #expect(Members(stored: stored, for: 78) == nil)
        for bit in 0..<64 { #expect(Members(stored: stored ^ 1 << bit, for: 77) == nil) }
    }

    @Test func `a place is what it was made of, and places of a bundle are neighbours`() {
        for bundle in [1, 2, Place.numbers.upperBound] {
            for (position, count) in [(0, 1), (47, 48), (3, 9)] {
                let place = Place(bundle: bundle, position: position, count: count)
                #expect(place.bundle == bundle && place.position == position && place.count == count)
            }
        }
        #expect(Place(bundle: 1, position: 47, count: 48) < Place(bundle: 2, position: 0, count: 1))
    }

    @Test func `identifiers of another length than sixteen bytes are not read`() {
        let bytes = [UInt8](1...17)
        #expect(
            bytes.prefix(16).withUnsafeBytes { NotificationID(stored: $0) }
                == NotificationID(high: 0x0102_0304_0506_0708, low: 0x090A_0B0C_0D0E_0F10)
        )
        for count in [0, 1, 15, 17] {
            #expect(bytes.prefix(count).withUnsafeBytes { NotificationID(stored: $0) } == nil)
        }
    }
}
