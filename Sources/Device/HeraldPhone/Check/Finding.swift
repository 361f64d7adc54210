/// An error, a probable mistake or a remark about a payload or bundle.
public struct Finding: Hashable, Sendable, Codable {
    /// The severity of a finding.
    public enum Severity: String, Hashable, Sendable, CaseIterable, Codable {
        /// The service refuses it.
        case error
        /// The service accepts it, but the device may not do what the author meant.
        case warning
        /// Apple's documents disagree about it; both forms work.
        case note
    }

    /// The severity.
    public var severity: Severity
    /// The place, like `aps.badge`; empty for the whole payload.
    public var place: String
    /// The problem, and its solution if it is not obvious, on one line for people.
    public var message: String

    init(_ severity: Severity = .warning, _ place: String = "", _ message: String) {
        self.severity = severity
        self.place = place
        self.message = message
    }
}
