import HeraldMailbox
import HeraldModel
import Testing

@testable import HeraldStores

struct JournalDigestTests {
    @Test func `a filter finds every key, and passes few others`() {
        var random = SystemRandomNumberGenerator()
        let slices = 4
        let keys = (0..<(slices * BlockFilter.bytesPerSlice * 8 / 10)).map { _ in
            BlockFilter.hash(random.next(), random.next())
        }
        var filter = BlockFilter(slices: slices)
        for key in keys { filter.insert(key) }
        let stored = (0..<slices).map { filter.bytes(ofSlice: $0) }
        #expect(stored.allSatisfy { $0.count == BlockFilter.bytesPerSlice })
        func contains(_ hash: UInt64) -> Bool {
            let place = BlockFilter.Place(hash, slices: slices)
            return stored[place.slice].withUnsafeBytes { place.isSet(inSlice: $0) }
        }
        #expect(keys.allSatisfy(contains))
        let count = 20_000
        let passed = (0..<count).count { _ in contains(BlockFilter.hash(random.next(), random.next())) }
        #expect(passed > 0 && passed < count * 3 / 100)
        // Numbers in their order are as good as random ones.
        let numbers = (0..<UInt64(count)).count { contains(BlockFilter.hash($0)) }
        #expect(numbers < count * 3 / 100)
    }

    @Test func `a key sets the bits of Parquet's filter in its block, and no others`() {
        let salts: [UInt32] = [
            0x47B6_137B, 0x4497_4D91, 0x8824_AD5B, 0xA2B7_289D, 0x7054_95C7, 0x2DF1_424B, 0x9EFC_4947, 0x5C6B_FB31,
        ]
        let blocks = UInt64(2 * BlockFilter.blocksPerSlice)
        for hash in [0, 1, 0x0123_4567_89AB_CDEF, .max, BlockFilter.hash(7)] as [UInt64] {
            var filter = BlockFilter(slices: 2)
            filter.insert(hash)
            let bytes = filter.bytes(ofSlice: 0) + filter.bytes(ofSlice: 1)
            var expected = [UInt8](repeating: 0, count: bytes.count)
            for (word, salt) in salts.enumerated() {
                let bit = Int((UInt32(truncatingIfNeeded: hash) &* salt) >> 27)
                let block = Int(((hash >> 32) * blocks) >> 32)
                expected[block * 32 + word * 4 + bit / 8] |= 1 << UInt8(bit % 8)
            }
            #expect(bytes == expected)
        }
    }

    @Test func `keys in order are spread over all blocks and bits`() {
        let slices = 2
        var filter = BlockFilter(slices: slices)
        let blocks = slices * BlockFilter.blocksPerSlice
        for number in 0..<UInt64(blocks * 100) { filter.insert(BlockFilter.hash(number)) }
        // A hundred keys in a block leave about one bit of 24 unset.
        let bytes = (0..<slices).flatMap { filter.bytes(ofSlice: $0) }
        let set = bytes.reduce(0) { $0 + $1.nonzeroBitCount }
        #expect(set > bytes.count * 8 * 90 / 100)
    }

    private static func event(_ number: UInt64, app: UInt32, _ state: JournalState = .received) -> JournalEvent {
        JournalEvent(
            time: WallTime(milliseconds: Int64(number)),
            id: NotificationID(high: 1, low: number),
            uniqueID: NotificationID(high: 2, low: number),
            recipient: .device(DeviceNumber(number)),
            app: AppNumber(app),
            state: state,
            request: JournalRequest(sender: SenderNumber(UInt16(app)))
        )
    }

    @Test func `a digest has the summary and all keys of its rows`() throws {
        var digest = JournalDigest(chunk: 3)
        for first in [1, 101] as [UInt64] {
            var row = JournalRow()
            for number in first..<(first + 100) { row.append(Self.event(number, app: UInt32(first))) }
            digest.add(row.keys)
        }
        let rows = Dictionary(uniqueKeysWithValues: digest.rows.map { ($0.number, $0.bits) })
        #expect(rows.count == JournalDigest.sliceCount)
        #expect(rows.values.allSatisfy { $0.count <= 4040 })
        func content(_ slice: Int) throws -> [UInt8] {
            let number = JournalDigest.rowNumber(3, slice: slice)
            let row = try #require(rows[number])
            let content = row.withUnsafeBytes { JournalDigest.content($0, number: number).map { Array($0) } }
            return try #require(content)
        }
        let summary = try #require(try content(0).withUnsafeBytes { DigestSummary.read($0) })
        #expect(summary == digest.summary)
        #expect(summary.firstTime == 1 && summary.lastTime == 200)
        #expect(summary.apps == [AppNumber(1), AppNumber(101)])
        #expect(summary.senders == [SenderNumber(1), SenderNumber(101)])
        #expect(summary.states == 1 << 1)
        for number in 1...200 as ClosedRange<UInt64> {
            let event = Self.event(number, app: 1)
            for id in [event.id, event.uniqueID] {
                let (slice, place) = JournalDigest.place(ofIdentifier: JournalKeys.hash(id))
                #expect(try content(slice).withUnsafeBytes { place.isSet(inSlice: $0) })
            }
            let (slice, place) = JournalDigest.place(ofDevice: JournalKeys.hash(DeviceNumber(number)))
            #expect(try content(slice).withUnsafeBytes { place.isSet(inSlice: $0) })
        }
    }

    @Test func `a damaged row of a digest has no content`() throws {
        let row = try #require(JournalDigest(chunk: 0).rows.first)
        func hasContent(_ bits: [UInt8], _ number: Int64) -> Bool {
            bits.withUnsafeBytes { JournalDigest.content($0, number: number) != nil }
        }
        #expect(hasContent(row.bits, row.number))
        #expect(!hasContent(row.bits, row.number + 1))
        #expect(!hasContent([], row.number))
        #expect(!hasContent(row.bits.dropLast(), row.number))
        for index in row.bits.indices {
            var damaged = row.bits
            damaged[index] ^= 4
            #expect(!hasContent(damaged, row.number))
        }
    }

    @Test func `a summary of too many apps includes any`() throws {
        var summary = JournalSummary()
        for app in 1...64 as ClosedRange<UInt32> { summary.add(Self.event(1, app: app)) }
        #expect(summary.apps?.count == 64)
        var filter = JournalFilter()
        filter.topics.add([.app(AppNumber(65))])
        #expect(!filter.mayInclude(summary))
        summary.add(Self.event(1, app: 66))
        #expect(summary.apps == nil && summary.senders == nil)
        #expect(filter.mayInclude(summary))
        let bytes = DigestSummary.bytes(summary)
        #expect(bytes.withUnsafeBytes { DigestSummary.read($0) } == summary)
        #expect(bytes.dropLast().withUnsafeBytes { DigestSummary.read($0) } == nil)
        var joined = JournalSummary()
        joined.add(summary)
        #expect(joined == summary)
    }
}
