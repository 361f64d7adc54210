/// An environment of APNs: a token, certificate or key of one is not valid in the other.
public enum PushEnvironment: String, Hashable, Sendable, CaseIterable, Codable {
    /// Released apps.
    case production
    /// Apps in development.
    case sandbox

    /// The environment that a client selects by the host name it connects to (server name indication, or `:authority`).
    ///
    /// - Parameter name: A host name, optionally with a port; case does not matter.
    /// - Returns: ``sandbox`` for a name that contains `sandbox` or `development`; else nil, and the listener's setting
    ///   decides.
    public static func named(by name: some StringProtocol) -> PushEnvironment? {
        // Bytes, because searching a string takes some 10 µs of every handshake.
        let found = name.utf8.withContiguousStorageIfAvailable { namesSandbox($0) }
        return found ?? Array(name.utf8).withUnsafeBufferPointer { namesSandbox($0) } ? .sandbox : nil
    }

    /// The server name by which a client reaches this environment of a service that has both.
    ///
    /// - Parameter host: The service's host.
    /// - Returns: In the sandbox `sandbox.` and the host, Apple's own name of the sandbox, or the host itself if it names the
    ///   sandbox already; nil for an address, which cannot name an environment. In production the host itself.
    package func serverName(of host: String) -> String? {
        guard self == .sandbox, Self.named(by: host) != .sandbox else { return host }
        guard !host.contains(":"), host.contains(where: \.isLetter) else { return nil }
        let apple = ".push.apple.com"
        return host.hasSuffix(apple) ? host.dropLast(apple.count) + ".sandbox" + apple : "sandbox.\(host)"
    }

    private static func namesSandbox(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        holds("sandbox", name) || holds("development", name)
    }

    /// Whether a name contains a lowercase word, in either case of ASCII.
    private static func holds(_ word: StaticString, _ name: UnsafeBufferPointer<UInt8>) -> Bool {
        let word = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        guard name.count >= word.count else { return false }
        return (0...name.count - word.count).contains { start in
            // The bit distinguishes upper and lower case; no other byte becomes one of `a` to `z` by it.
            word.indices.allSatisfy { name[start + $0] | 0x20 == word[$0] }
        }
    }
}
