/// Something about a payload that is wrong, or that its author may not have meant.
public struct Finding: Hashable, Sendable, Encodable {
    /// How bad it is.
    public enum Severity: String, Hashable, Sendable, Encodable {
        /// The service refuses it.
        case error
        /// The service accepts it; the device may do something else than was meant.
        case warning
    }

    /// How bad it is.
    public var severity: Severity
    /// Where it is, like `aps.badge`; empty for the payload as a whole.
    public var place: String
    /// What it is, and where that is not plain, how to mend it; one line for people.
    public var message: String

    init(_ severity: Severity = .warning, _ place: String = "", _ message: String) {
        self.severity = severity
        self.place = place
        self.message = message
    }
}
