/// A fault of a cluster's engine, as an operator reads it.
package struct ClusterFinding: Hashable, Sendable {
    package enum Severity: Hashable, Sendable {
        /// The node serves, and the operator should act.
        case warning
        /// The node must not serve: it could lose or hide what it accepted.
        case refusal
    }

    package let severity: Severity
    /// The fault, as the beginning of a sentence.
    package let text: String
    /// The way to mend it.
    package let remedy: String

    /// Whether a refusal may be over soon: servers that have just started answer late.
    package let mayPass: Bool

    package init(_ severity: Severity, _ text: String, remedy: String, mayPass: Bool = false) {
        self.severity = severity
        self.text = text
        self.remedy = remedy
        self.mayPass = mayPass
    }

    package var line: String { "\(text): \(remedy)" }
}
