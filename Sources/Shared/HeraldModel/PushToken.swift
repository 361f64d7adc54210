/// A device token as a sender knows it: 1 to 100 opaque bytes, whose length depends on the service.
///
/// Its text is 2 to 200 hexadecimal digits, read in either case and written in lower case. The tokens that Herald issues
/// have 32 bytes (``DeviceToken``); Apple documents no length.
public struct PushToken: Hashable, Sendable {
    // A token of 32 bytes is always `own`, so that equal tokens are equal values.
    private enum Content: Hashable, Sendable {
        case own(DeviceToken)
        case other([UInt8])
    }

    /// Maximum length, in bytes.
    public static let maximumByteCount = 100
    /// The rule for its text, for messages.
    package static let rule = "2 to \(2 * maximumByteCount) hexadecimal digits, an even number"

    private let content: Content

    /// Makes the token of a Herald.
    public init(_ token: DeviceToken) {
        content = .own(token)
    }

    /// Makes a token from its bytes.
    /// - Returns: nil unless there are 1 to 100.
    public init?(bytes: some Collection<UInt8>) {
        guard (1...PushToken.maximumByteCount).contains(bytes.count) else { return nil }
        content = DeviceToken(bytes: bytes).map { .own($0) } ?? .other(Array(bytes))
    }

    /// Reads 2 to 200 hexadecimal digits of either case, an even number.
    /// - Returns: nil for every other text.
    public init?(_ text: some StringProtocol) {
        if let token = DeviceToken(text) {
            self.init(token)
        } else {
            guard text.utf8.count <= 2 * PushToken.maximumByteCount, let bytes = Hex.bytes(text) else { return nil }
            self.init(bytes: bytes)
        }
    }

    /// The bytes.
    public var bytes: [UInt8] {
        switch content {
        case .own(let token): token.bytes
        case .other(let bytes): bytes
        }
    }

    /// Number of bytes.
    public var byteCount: Int {
        switch content {
        case .own: DeviceToken.byteCount
        case .other(let bytes): bytes.count
        }
    }

    /// The digits in lower case.
    public var hex: String {
        switch content {
        case .own(let token): token.hex
        case .other(let bytes): Hex.text(bytes)
        }
    }

    /// The token as one of Herald's own; nil if it has another length.
    package var own: DeviceToken? {
        guard case .own(let token) = content else { return nil }
        return token
    }
}

extension PushToken: CustomStringConvertible {
    /// The first digits, eight at most: a token is a capability, and a log must not leak it.
    public var description: String {
        hex.prefix(min(8, byteCount)) + "…"
    }
}
