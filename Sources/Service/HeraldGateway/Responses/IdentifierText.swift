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

    /// Writes an identifier in canonical form, in lower case (RFC 9562 §4).
    ///
    /// Journal, devices and everything else of Herald spell it so, too (``HeraldModel/NotificationID``).
    init(_ id: NotificationID) {
        withUnsafeMutableBytes(of: &storage) { id.write(to: $0) }
    }

    /// The identifier; nil if the text is not a UUID.
    var id: NotificationID? { withBytes { NotificationID(utf8: $0) } }

    /// The 36 bytes.
    func withBytes<Result>(_ read: (UnsafeRawBufferPointer) -> Result) -> Result {
        withUnsafeBytes(of: storage) { read(UnsafeRawBufferPointer(rebasing: $0.prefix(IdentifierText.byteCount))) }
    }

    static func == (left: IdentifierText, right: IdentifierText) -> Bool {
        left.storage == right.storage
    }
}
