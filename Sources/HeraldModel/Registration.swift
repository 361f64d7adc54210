/// A device's name in the world: what its certificate says after `urn:herald:device:`.
///
/// 1 to 64 bytes; letters, digits, `-`, `_` and `.`.
public struct DeviceID: Hashable, Sendable {
    /// What stands before the identifier in a certificate's URI name.
    public static let urnPrefix = "urn:herald:device:"

    /// The identifier.
    public let name: String

    /// Reads an identifier.
    /// - Returns: nil if it is empty, too long, or has a character that no identifier has.
    public init?(_ name: some StringProtocol) {
        var name = String(name)
        // The bytes at once: a start reads a million of these.
        guard name.withUTF8({ (1...64).contains($0.count) && $0.allSatisfy(DeviceID.allows) }) else { return nil }
        self.name = name
    }

    private static func allows(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
            true
        default: false
        }
    }
}

extension DeviceID: CustomStringConvertible {
    /// The identifier.
    public var description: String { name }
}

/// The service's own number for a device; never reused.
package struct DeviceNumber: Hashable, Sendable {
    package let value: UInt64

    package init(_ value: UInt64) {
        self.value = value
    }
}

/// The service's own number for an ``App``; never reused.
package struct AppNumber: Hashable, Sendable {
    package let value: UInt32

    package init(_ value: UInt32) {
        self.value = value
    }
}

/// One app on one device: the place for which the mailbox keeps one notification.
package struct Slot: Hashable, Sendable {
    package let device: DeviceNumber
    package let app: AppNumber

    package init(device: DeviceNumber, app: AppNumber) {
        self.device = device
        self.app = app
    }
}

/// What a device token holds, opened.
///
/// The generation counts how often the app was removed from the device: a token of an earlier generation is dead for
/// ever, though the same app may be back under another.
package struct TokenContents: Hashable, Sendable {
    package let slot: Slot
    package let generation: UInt32

    package init(slot: Slot, generation: UInt32) {
        self.slot = slot
        self.generation = generation
    }
}
