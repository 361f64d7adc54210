/// Generates identifiers of notifications, seeded from the system's generator.
///
/// The system's generator would cost four system calls per request. Identifiers must be unique, not secret. The generator
/// is xoshiro256++ (Blackman and Vigna, 2019), with a period of 2^256 - 1.
package struct IdentifierSource: RandomNumberGenerator {
    private var state: (UInt64, UInt64, UInt64, UInt64)

    package init(seed: (UInt64, UInt64, UInt64, UInt64)) {
        // The generator never leaves the state of all zeros.
        state = seed == (0, 0, 0, 0) ? (1, 2, 3, 4) : seed
    }

    /// Makes a source with a random seed.
    package init() {
        var system = SystemRandomNumberGenerator()
        self.init(seed: (system.next(), system.next(), system.next(), system.next()))
    }

    package mutating func next() -> UInt64 {
        let result = Self.rotated(state.0 &+ state.3, by: 23) &+ state.0
        let shifted = state.1 << 17
        state.2 ^= state.0
        state.3 ^= state.1
        state.1 ^= state.2
        state.0 ^= state.3
        state.2 ^= shifted
        state.3 = Self.rotated(state.3, by: 45)
        return result
    }

    private static func rotated(_ value: UInt64, by count: UInt64) -> UInt64 {
        value << count | value >> (64 - count)
    }

    /// A new identifier.
    package mutating func identifier() -> NotificationID {
        NotificationID(random: next(), next())
    }

    /// A new identifier that ends with the provider's 32-bit identifier of the binary interface (version 8, RFC 9562
    /// §5.8); its other 90 bits are random.
    package mutating func identifier(ending identifier: UInt32) -> NotificationID {
        let random = NotificationID(random: next(), next())
        return NotificationID(
            high: random.high & ~0xF000 | 0x8000,
            low: random.low & ~0xFFFF_FFFF | UInt64(identifier)
        )
    }
}
