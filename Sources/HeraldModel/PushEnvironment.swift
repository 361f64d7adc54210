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
        let lowered = name.lowercased()
        return lowered.contains("sandbox") || lowered.contains("development") ? .sandbox : nil
    }
}
