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
