/// The identifier of a device: the URI name of its certificate after `urn:herald:device:`.
///
/// 1 to 64 bytes of `A` to `Z`, `a` to `z`, `0` to `9`, `-`, `_` and `.`.
public struct DeviceID: Hashable, Sendable {
    /// The prefix of the identifier in a certificate's URI name.
    public static let urnPrefix = "urn:herald:device:"

    /// The identifier.
    public let name: String

    /// Reads an identifier.
    /// - Returns: nil if it is empty, too long, or has an invalid character.
    public init?(_ name: some StringProtocol) {
        var name = String(name)
        // All bytes at once: the service reads a million of these when it starts.
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
