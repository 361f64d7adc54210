/// A device token: 32 opaque bytes by which a provider addresses a registration.
///
/// Its text is 64 hexadecimal digits, read in either case and written in lower case.
public struct DeviceToken: Hashable, Sendable {
    /// How many bytes a token has.
    public static let byteCount = 32

    /// The token's bytes in four words, most significant first.
    package let words: (UInt64, UInt64, UInt64, UInt64)

    /// Makes a token from four words, most significant first.
    package init(words: (UInt64, UInt64, UInt64, UInt64)) {
        self.words = words
    }

    /// Makes a token from 32 bytes.
    /// - Returns: nil for any other number of bytes.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == DeviceToken.byteCount else { return nil }
        var reader = bytes.makeIterator()
        func word() -> UInt64 {
            var value: UInt64 = 0
            for _ in 0..<8 { value = value << 8 | UInt64(reader.next() ?? 0) }
            return value
        }
        words = (word(), word(), word(), word())
    }

    /// Reads 64 hexadecimal digits of either case.
    /// - Returns: nil for every other text.
    public init?(_ text: some StringProtocol) {
        var text = String(text)
        let token = text.withUTF8 { DeviceToken(hex: UnsafeRawBufferPointer($0)) }
        guard let token else { return nil }
        self = token
    }

    /// Reads 64 hexadecimal digits from their bytes.
    package init?(hex digits: some Collection<UInt8>) {
        guard digits.count == DeviceToken.byteCount * 2 else { return nil }
        let token = Array(digits).withUnsafeBytes { DeviceToken(hex: $0) }
        guard let token else { return nil }
        self = token
    }

    /// Reads 64 hexadecimal digits in place; not generic, because every request uses it.
    package init?(hex digits: UnsafeRawBufferPointer) {
        guard digits.count == DeviceToken.byteCount * 2 else { return nil }
        guard let first = Hex.word(digits, at: 0), let second = Hex.word(digits, at: 16),
            let third = Hex.word(digits, at: 32), let fourth = Hex.word(digits, at: 48)
        else { return nil }
        words = (first, second, third, fourth)
    }

    /// The 32 bytes.
    public var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(DeviceToken.byteCount)
        for word in [words.0, words.1, words.2, words.3] {
            for shift in stride(from: 56, through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(shift)))
            }
        }
        return bytes
    }

    /// Whether two tokens are the same bytes.
    public static func == (left: DeviceToken, right: DeviceToken) -> Bool {
        left.words == right.words
    }

    /// Feeds the token's bytes to a hasher.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
        hasher.combine(words.1)
        hasher.combine(words.2)
        hasher.combine(words.3)
    }

    /// The 64 digits in lower case.
    public var hex: String {
        String(unsafeUninitializedCapacity: 2 * DeviceToken.byteCount) { digits in
            Hex.write(words.0, to: digits, at: 0)
            Hex.write(words.1, to: digits, at: 16)
            Hex.write(words.2, to: digits, at: 32)
            Hex.write(words.3, to: digits, at: 48)
            return 2 * DeviceToken.byteCount
        }
    }
}

extension DeviceToken: CustomStringConvertible {
    /// The first eight digits: a token is a capability, and a log must not leak it.
    public var description: String {
        hex.prefix(8) + "…"
    }
}

/// The contents of a device token.
///
/// The generation counts how often the app was removed from the device. A token of an earlier generation stays invalid even
/// if the app is registered again.
package struct TokenContents: Hashable, Sendable {
    package let slot: Slot
    package let generation: UInt32

    package init(slot: Slot, generation: UInt32) {
        self.slot = slot
        self.generation = generation
    }
}
