/// A Bloom filter in blocks of 256 bits, as Apache Parquet has it: a key sets one bit in each of a block's eight words.
///
/// A test reads one block. With ten bits for each key, one test in a hundred passes for a key that is not there. The places
/// of a key are part of the format.
struct BlockFilter: Hashable, Sendable {
    /// Blocks in one stored row, so that a row with its checksum fits a page of 4 KiB.
    static let blocksPerSlice = 126
    static let wordsPerBlock = 8
    static let bytesPerSlice = blocksPerSlice * wordsPerBlock * 4

    /// The words of a block.
    fileprivate typealias Block = SIMD8<UInt32>

    /// The odd multipliers of Parquet's filter, one for each word of a block.
    private static var salts: Block {
        Block(
            0x47B6_137B,
            0x4497_4D91,
            0x8824_AD5B,
            0xA2B7_289D,
            0x7054_95C7,
            0x2DF1_424B,
            0x9EFC_4947,
            0x5C6B_FB31
        )
    }

    /// The place of a key: its block, and the bit in each word of the block.
    struct Place {
        let block: Int
        fileprivate let key: UInt32

        /// `hash` is as ``BlockFilter/hash(_:_:)`` makes it, and `slices` is the length of the filter.
        init(_ hash: UInt64, slices: Int) {
            let blocks = UInt64(slices * BlockFilter.blocksPerSlice)
            block = Int(((hash >> 32) * blocks) >> 32)
            key = UInt32(truncatingIfNeeded: hash)
        }

        var slice: Int { block / BlockFilter.blocksPerSlice }

        /// The key's bit in each word.
        @inline(__always) fileprivate var mask: Block {
            Block(repeating: 1) &<< ((Block(repeating: key) &* BlockFilter.salts) &>> 27)
        }

        /// Whether a key of this place may be in a slice, whose bytes are those of ``BlockFilter/bytes(ofSlice:)``.
        func isSet(inSlice bytes: UnsafeRawBufferPointer) -> Bool {
            let start = (block % BlockFilter.blocksPerSlice) * BlockFilter.wordsPerBlock * 4
            let mask = mask
            for word in 0..<BlockFilter.wordsPerBlock {
                let stored = bytes.loadUnaligned(fromByteOffset: start + word * 4, as: UInt32.self)
                if UInt32(littleEndian: stored) & mask[word] == 0 { return false }
            }
            return true
        }
    }

    let slices: Int
    private var blocks: [Block]

    init(slices: Int) {
        self.slices = slices
        blocks = Array(repeating: .zero, count: slices * BlockFilter.blocksPerSlice)
    }

    /// Mixes a key, so that its bits are as good as random.
    static func hash(_ first: UInt64, _ second: UInt64 = 0) -> UInt64 {
        var hash = (first ^ 0x9E37_79B9_7F4A_7C15) &* 0xFF51_AFD7_ED55_8CCD
        hash = (hash ^ (hash >> 32) ^ second) &* 0xC4CE_B9FE_1A85_EC53
        hash = (hash ^ (hash >> 29)) &* 0x94D0_49BB_1331_11EB
        return hash ^ (hash >> 32)
    }

    mutating func insert(_ hash: UInt64) {
        let place = Place(hash, slices: slices)
        blocks[place.block] |= place.mask
    }

    /// The stored form of a slice.
    func bytes(ofSlice slice: Int) -> [UInt8] {
        let first = slice * BlockFilter.blocksPerSlice
        var bytes: [UInt8] = []
        bytes.reserveCapacity(BlockFilter.bytesPerSlice)
        for block in blocks[first..<(first + BlockFilter.blocksPerSlice)] {
            for word in block.indices {
                withUnsafeBytes(of: block[word].littleEndian) { bytes.append(contentsOf: $0) }
            }
        }
        return bytes
    }
}
