import HeraldMailbox
import HeraldModel

/// A digest of a chunk of the journal, which tells what the chunk does not have.
///
/// A chunk is 4 MiB of positions, some 150,000 lines. Its digest is a summary, and a ``BlockFilter`` each for identifiers and
/// for devices. It is stored in rows of one page, so that a search reads one page of it for each thing that it asks.
///
/// | slice | content |
/// |---|---|
/// | 0 | the summary (``DigestSummary``) |
/// | 1 to 33 | identifiers |
/// | 34 to 50 | devices |
struct JournalDigest {
    /// Positions of the journal in one chunk: 4 MiB.
    static let chunkBits: Int64 = 22
    /// 1.06 million bits: ten for each of the two identifiers of 50,000 notifications.
    static let identifierSlices = 33
    /// Half as many, for one device each.
    static let deviceSlices = 17
    static let sliceCount = 1 + identifierSlices + deviceSlices
    /// The slices of a chunk take this many row numbers.
    private static let sliceBits: Int64 = 6
    private static let checksumLength = 8

    let chunk: Int64
    private(set) var summary = JournalSummary()
    private var identifiers = BlockFilter(slices: identifierSlices)
    private var devices = BlockFilter(slices: deviceSlices)

    init(chunk: Int64) {
        self.chunk = chunk
    }

    /// The chunk of a row, by the row's position.
    static func chunk(of position: Int64) -> Int64 { position >> chunkBits }

    /// The first position of a chunk.
    static func start(of chunk: Int64) -> Int64 { chunk << chunkBits }

    static func rowNumber(_ chunk: Int64, slice: Int) -> Int64 { (chunk << sliceBits) + Int64(slice) }

    mutating func add(_ keys: JournalKeys) {
        summary.add(keys.summary)
        for hash in keys.identifiers { identifiers.insert(hash) }
        for hash in keys.devices { devices.insert(hash) }
    }

    /// The stored rows.
    var rows: [(number: Int64, bits: [UInt8])] {
        (0..<JournalDigest.sliceCount).map { slice in
            let content =
                if slice == 0 {
                    DigestSummary.bytes(summary)
                } else if slice <= JournalDigest.identifierSlices {
                    identifiers.bytes(ofSlice: slice - 1)
                } else {
                    devices.bytes(ofSlice: slice - 1 - JournalDigest.identifierSlices)
                }
            let number = JournalDigest.rowNumber(chunk, slice: slice)
            let sum = content.withUnsafeBytes { JournalDigest.checksum(number, $0) }
            return (number, content + withUnsafeBytes(of: sum.littleEndian) { Array($0) })
        }
    }

    /// The content of a stored row; nil if it is damaged.
    static func content(_ row: UnsafeRawBufferPointer, number: Int64) -> UnsafeRawBufferPointer? {
        guard row.count > checksumLength else { return nil }
        let content = UnsafeRawBufferPointer(rebasing: row.dropLast(checksumLength))
        let sum = row.loadUnaligned(fromByteOffset: content.count, as: UInt64.self)
        return UInt64(littleEndian: sum) == checksum(number, content) ? content : nil
    }

    /// The number is in it, so that a row in another's place is damaged.
    private static func checksum(_ number: Int64, _ content: UnsafeRawBufferPointer) -> UInt64 {
        var sum = Checksum()
        sum.add(UInt64(bitPattern: number))
        sum.add(content)
        return sum.value
    }

    static func place(ofIdentifier hash: UInt64) -> (slice: Int, place: BlockFilter.Place) {
        let place = BlockFilter.Place(hash, slices: identifierSlices)
        return (1 + place.slice, place)
    }

    static func place(ofDevice hash: UInt64) -> (slice: Int, place: BlockFilter.Place) {
        let place = BlockFilter.Place(hash, slices: deviceSlices)
        return (1 + identifierSlices + place.slice, place)
    }
}

/// The stored form of a ``JournalSummary``: first and last time, states and reasons, each of eight bytes; then the number of
/// apps in one byte (255 for too many) and their numbers of four bytes; and the same of senders, of two bytes.
///
/// All numbers are little-endian.
enum DigestSummary {
    private static let tooMany: UInt8 = 255

    static func bytes(_ summary: JournalSummary) -> [UInt8] {
        var bytes: [UInt8] = []
        func add(_ value: some FixedWidthInteger) {
            withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
        }
        add(summary.firstTime)
        add(summary.lastTime)
        add(summary.states)
        add(summary.reasons)
        add(summary.apps.map { UInt8(clamping: $0.count) } ?? tooMany)
        for app in summary.apps ?? [] { add(app.value) }
        add(summary.senders.map { UInt8(clamping: $0.count) } ?? tooMany)
        for sender in summary.senders ?? [] { add(sender.value) }
        return bytes
    }

    /// - Returns: nil if the bytes are not a summary.
    static func read(_ bytes: UnsafeRawBufferPointer) -> JournalSummary? {
        var offset = 0
        func next<Value: FixedWidthInteger>(_ type: Value.Type) -> Value? {
            let size = MemoryLayout<Value>.size
            guard offset + size <= bytes.count else { return nil }
            defer { offset += size }
            return Value(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Value.self))
        }
        guard let first = next(Int64.self), let last = next(Int64.self), let states = next(UInt64.self),
            let reasons = next(UInt64.self), let appCount = next(UInt8.self)
        else { return nil }
        var summary = JournalSummary()
        summary.firstTime = first
        summary.lastTime = last
        summary.states = states
        summary.reasons = reasons
        summary.apps = appCount == tooMany ? nil : []
        for _ in 0..<(appCount == tooMany ? 0 : appCount) {
            guard let app = next(UInt32.self) else { return nil }
            summary.apps?.append(AppNumber(app))
        }
        guard let senderCount = next(UInt8.self) else { return nil }
        summary.senders = senderCount == tooMany ? nil : []
        for _ in 0..<(senderCount == tooMany ? 0 : senderCount) {
            guard let sender = next(UInt16.self) else { return nil }
            summary.senders?.append(SenderNumber(sender))
        }
        return offset == bytes.count ? summary : nil
    }
}
