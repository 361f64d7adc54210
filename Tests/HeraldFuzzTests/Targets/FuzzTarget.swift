/// A reader of foreign bytes, as a fuzzer sees it: any bytes go in, and a broken property ends the process.
struct FuzzTarget: Sendable {
    /// The name of its folder in `Corpus`.
    let name: String
    /// The longest input that is tried, in bytes.
    let maximumBytes: Int
    let body: @Sendable ([UInt8]) -> Void

    init(_ name: String, upTo maximumBytes: Int, _ body: @escaping @Sendable ([UInt8]) -> Void) {
        self.name = name
        self.maximumBytes = maximumBytes
        self.body = body
    }

    static let all: [FuzzTarget] =
        wire + listener + gateway + trust + payload + phone + device + relay + stores + cluster + settings + nats

    static func named(_ name: String) -> FuzzTarget? {
        (all + [control]).first { $0.name == name }
    }
}

/// Ends the process if a property does not hold; other than `precondition`, with its message in an optimized build too.
func check(_ holds: Bool, _ message: @autoclosure () -> String, line: UInt = #line, file: StaticString = #file) {
    guard !holds else { return }
    fatalError("broken property: \(message())", file: file, line: line)
}

/// Cuts bytes into pieces in several ways, which depend on the bytes alone.
///
/// So a seed is exactly what was on the wire, and a finding repeats.
enum Pieces {
    static func ways(_ bytes: [UInt8]) -> [[ArraySlice<UInt8>]] {
        let hash = bytes.reduce(UInt64(0xCBF2_9CE4_8422_2325)) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        let place = bytes.isEmpty ? 0 : Int(hash % UInt64(bytes.count))
        let size = 1 + Int(hash >> 32 % 61)
        var ways = [[bytes[..<place], bytes[place...]], cut(bytes, into: size)]
        if bytes.count <= 256 { ways.append(cut(bytes, into: 1)) }
        return ways
    }

    private static func cut(_ bytes: [UInt8], into size: Int) -> [ArraySlice<UInt8>] {
        stride(from: 0, to: bytes.count, by: size).map { bytes[$0..<min($0 + size, bytes.count)] }
    }
}
