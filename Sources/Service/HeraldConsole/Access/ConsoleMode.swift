/// Extent of the console.
package enum ConsoleMode: String, Codable, CaseIterable, Sendable {
    case full
    /// The port changes nothing; the control socket does.
    case readOnly = "read-only"
    /// No page, only the API.
    case apiOnly = "api-only"
    /// No port; the control socket stays.
    case off
}
