/// The two worlds of APNs: a token, certificate or key of one means nothing in the other.
public enum PushEnvironment: String, Hashable, Sendable, CaseIterable, Codable {
    /// Apps as their users have them.
    case production
    /// Apps in development; the names with `sandbox` or `development` in them lead here.
    case sandbox

    /// The environment that a client asks for by the name it connects to (server name indication, or `:authority`).
    ///
    /// A name with `sandbox` or `development` among its letters means sandbox; every other name says nothing, and the
    /// door's own setting decides.
    /// - Parameter name: A host name, optionally with a port; compared without regard to case.
    /// - Returns: ``sandbox`` or nil.
    public static func named(by name: some StringProtocol) -> PushEnvironment? {
        // With every handshake: bytes, since searching text takes some 10 µs.
        let found = name.utf8.withContiguousStorageIfAvailable { namesSandbox($0) }
        return found ?? Array(name.utf8).withUnsafeBufferPointer { namesSandbox($0) } ? .sandbox : nil
    }

    private static func namesSandbox(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        holds("sandbox", name) || holds("development", name)
    }

    /// Whether a word of small letters stands in a name, without regard to the case of ASCII letters.
    private static func holds(_ word: StaticString, _ name: UnsafeBufferPointer<UInt8>) -> Bool {
        let word = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        guard name.count >= word.count else { return false }
        return (0...name.count - word.count).contains { start in
            // The bit tells capitals from small letters, and no other byte becomes a letter by it.
            word.indices.allSatisfy { name[start + $0] | 0x20 == word[$0] }
        }
    }
}
