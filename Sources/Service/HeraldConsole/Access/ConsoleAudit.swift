/// A line of the audit: a change of the service, or an attempt.
package struct AuditEntry: Codable, Hashable, Sendable {
    /// Grows by one with each line; the audit sets it.
    package var id = 0
    package let time: String
    /// Name of the caller; absent for an attempt to sign in that failed.
    package let who: String?
    package let role: ConsoleRole?
    /// IP address, or `socket`.
    package let from: String
    package let proof: ConsoleCaller.Proof?
    /// The request: `POST /v1/drills/{id}/stop`.
    package let action: String
    /// The object of the request, if its path or the route names one.
    package let target: String?
    /// HTTP status of the answer.
    package let status: Int
    /// The reason why it was refused or failed.
    package let error: String?
    /// The number of further lines of the same kind that were not written, since the one before; nil for none.
    package var more: Int?

    /// Whether it was refused or failed, so that nothing changed.
    package var isRefused: Bool { status >= 400 }
}

/// Keeps the lines of the audit.
package protocol ConsoleAudit: Sendable {
    /// Adds a line, or counts it (``AuditThrottle``); it never waits for a disk.
    func write(_ entry: AuditEntry)

    /// The newest lines with smaller numbers than `before`, or of all; newest first, at most `limit`.
    func read(limit: Int, before: Int?) async throws -> [AuditEntry]
}
