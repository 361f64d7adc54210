import HeraldModel

/// A UUID as text: 36 bytes, without an allocation.
struct IdentifierText: Equatable {
    typealias Storage = (UInt64, UInt64, UInt64, UInt64, UInt32)
    static let byteCount = 36

    private var storage: Storage = (0, 0, 0, 0, 0)

    /// Copies a client's identifier byte for byte: some clients find their request by the exact text.
    /// - Returns: nil if the text does not have 36 bytes; the caller checks that it is a UUID.
    init?(copying text: UnsafeRawBufferPointer) {
        guard text.count == IdentifierText.byteCount else { return nil }
        withUnsafeMutableBytes(of: &storage) { $0.copyMemory(from: text) }
    }

    /// Writes an identifier in canonical form (RFC 9562 §4).
    ///
    /// APNs writes an `apns-id` that it generates in upper case and `apns-unique-id` in lower case.
    init(_ id: NotificationID, upperCase: Bool) {
        withUnsafeMutableBytes(of: &storage) { buffer in
            var position = 0
            for index in 0..<16 {
                if index == 4 || index == 6 || index == 8 || index == 10 {
                    buffer[position] = UInt8(ascii: "-")
                    position += 1
                }
                let half = index < 8 ? id.high : id.low
                let byte = UInt8(truncatingIfNeeded: half >> UInt64(56 - 8 * (index % 8)))
                buffer[position] = Self.digit(byte >> 4, upperCase)
                buffer[position + 1] = Self.digit(byte & 0xF, upperCase)
                position += 2
            }
        }
    }

    /// The identifier; nil if the text is not a UUID.
    var id: NotificationID? { withBytes { NotificationID(utf8: $0) } }

    private static func digit(_ value: UInt8, _ upperCase: Bool) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: upperCase ? "A" : "a") - 10 + value
    }

    /// The 36 bytes.
    func withBytes<Result>(_ read: (UnsafeRawBufferPointer) -> Result) -> Result {
        withUnsafeBytes(of: storage) { read(UnsafeRawBufferPointer(rebasing: $0.prefix(IdentifierText.byteCount))) }
    }

    static func == (left: IdentifierText, right: IdentifierText) -> Bool {
        left.storage == right.storage
    }
}
