import HeraldJSON

/// Reads Apple's binary property lists (`bplist00`).
///
/// Foundation's reader has no limits, and copies an object each time that something refers to it. A file of 200 bytes with 26
/// arrays, each of which has the next one twice, keeps it busy for a minute. Here, objects and the bytes of texts are limited,
/// and no memory is taken before that.
struct BinaryPropertyList {
    private let bytes: [UInt8]
    private let file: String
    /// Objects that may still be read.
    private var room: Int
    /// Bytes of texts that may still be read; a text counts each time that something refers to it.
    private var textRoom: Int
    private let referenceSize: Int
    private let offsets: [Int]

    /// Whether a file begins as a binary property list.
    static func isBinary(_ bytes: [UInt8]) -> Bool {
        bytes.starts(with: Array("bplist".utf8))
    }

    /// Reads a value with at most `limit` objects.
    static func read(_ bytes: [UInt8], file: String, limit: Int) throws -> JSON {
        let damaged = BundleError(file, "is a damaged binary property list")
        guard bytes.count >= 40 else { throw damaged }
        let trailer = bytes[(bytes.count - 32)...]
        let start = trailer.startIndex
        func number(at offset: Int, _ size: Int) throws -> Int {
            let value = trailer[(start + offset)..<(start + offset + size)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            guard let number = Int(exactly: value) else { throw damaged }
            return number
        }
        let offsetSize = try number(at: 6, 1)
        let referenceSize = try number(at: 7, 1)
        let count = try number(at: 8, 8)
        let top = try number(at: 16, 8)
        let table = try number(at: 24, 8)
        guard (1...8).contains(offsetSize), (1...8).contains(referenceSize), table >= 8, table <= bytes.count - 32,
            count >= 1, count <= limit, count <= (bytes.count - 32 - table) / offsetSize, top < count
        else { throw damaged }
        let offsets = try (0..<count).map { index in
            let position = table + index * offsetSize
            let value = bytes[position..<(position + offsetSize)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            guard value >= 8, value < UInt64(table) else { throw damaged }
            return Int(value)
        }
        var list = BinaryPropertyList(
            bytes: bytes,
            file: file,
            room: limit,
            textRoom: 8 * max(bytes.count, 1 << 20),
            referenceSize: referenceSize,
            offsets: offsets
        )
        return try list.object(top, depth: 1)
    }

    private var damaged: BundleError { BundleError(file, "is a damaged binary property list") }

    private mutating func object(_ index: Int, depth: Int) throws -> JSON {
        guard depth <= PropertyListFile.maximumDepth, offsets.indices.contains(index), room > 0 else { throw damaged }
        room -= 1
        var place = offsets[index]
        let marker = bytes[place]
        place += 1
        switch marker >> 4 {
        case 0x0: return marker == 0x08 ? .boolean(false) : marker == 0x09 ? .boolean(true) : .null
        case 0x1: return .number(JSON.Number(try integer(&place, size: 1 << (marker & 0x0F))))
        case 0x2: return try real(place, size: 1 << (marker & 0x0F))
        case 0x5, 0x7:
            let count = try length(marker, &place)
            try spend(count)
            guard let text = String(validating: try slice(place, count), as: UTF8.self) else { throw damaged }
            return .string(text)
        case 0x6:
            let count = try length(marker, &place)
            try spend(2 * count)
            let units = try slice(place, count, of: 2)
            let pairs = stride(from: units.startIndex, to: units.endIndex, by: 2)
            return .string(
                String(decoding: pairs.map { UInt16(units[$0]) << 8 | UInt16(units[$0 + 1]) }, as: UTF16.self)
            )
        case 0xA, 0xC:
            let count = try length(marker, &place)
            try checkReferences(place, count)
            var elements: [JSON] = []
            for position in 0..<count {
                elements.append(try object(try reference(place, position), depth: depth + 1))
            }
            return .array(elements)
        case 0xD:
            let count = try length(marker, &place)
            // The keys, then the values.
            try checkReferences(place, 2 * count)
            var members: JSON.Object = [:]
            for position in 0..<count {
                let key = try object(try reference(place, position), depth: depth + 1)
                guard case .string(let name) = key else { throw damaged }
                members[name] = try object(try reference(place, count + position), depth: depth + 1)
            }
            return .object(members)
        default: return .null
        }
    }

    private func slice(_ place: Int, _ count: Int, of size: Int = 1) throws -> ArraySlice<UInt8> {
        guard count >= 0, count <= (bytes.count - place) / size else { throw damaged }
        return bytes[place..<(place + count * size)]
    }

    private mutating func spend(_ count: Int) throws {
        guard count <= textRoom else { throw damaged }
        textRoom -= count
    }

    private func checkReferences(_ place: Int, _ count: Int) throws {
        guard place <= bytes.count, count <= room else { throw damaged }
        _ = try slice(place, count, of: referenceSize)
    }

    /// The reference at a position of a list that was checked.
    private func reference(_ place: Int, _ position: Int) throws -> Int {
        let start = place + position * referenceSize
        let value = bytes[start..<(start + referenceSize)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard let reference = Int(exactly: value) else { throw damaged }
        return reference
    }

    /// The count in the marker, or in the integer after it.
    private func length(_ marker: UInt8, _ place: inout Int) throws -> Int {
        guard marker & 0x0F == 0x0F else { return Int(marker & 0x0F) }
        guard place < bytes.count, bytes[place] >> 4 == 1 else { throw damaged }
        let size = 1 << Int(bytes[place] & 0x0F)
        place += 1
        let count = try integer(&place, size: size)
        guard count >= 0, count <= bytes.count else { throw damaged }
        return Int(count)
    }

    private func integer(_ place: inout Int, size: Int) throws -> Int128 {
        guard size <= 16 else { throw damaged }
        let raw = try slice(place, size)
        place += size
        let bits = raw.reduce(UInt128(0)) { $0 << 8 | UInt128($1) }
        // Integers of 8 bytes and more have a sign. Unsigned ones of 64 bits have 16 bytes.
        return size == 8 ? Int128(Int64(truncatingIfNeeded: bits)) : Int128(truncatingIfNeeded: bits)
    }

    private func real(_ place: Int, size: Int) throws -> JSON {
        let raw = try slice(place, size)
        let bits = raw.suffix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let real: Double
        switch size {
        case 4: real = Double(Float(bitPattern: UInt32(truncatingIfNeeded: bits)))
        case 8: real = Double(bitPattern: bits)
        default: throw damaged
        }
        return JSON.Number(real).map { .number($0) } ?? .null
    }
}
