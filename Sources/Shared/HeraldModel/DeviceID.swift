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
        guard name.withUTF8({ (1...64).contains($0.count) && $0.allSatisfy { $0.isASCIINameByte } }) else { return nil }
        self.name = name
    }
}

extension DeviceID: CustomStringConvertible {
    /// The identifier.
    public var description: String { name }
}
