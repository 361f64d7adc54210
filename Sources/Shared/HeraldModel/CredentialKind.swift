/// Kinds of a provider's credentials.
package enum CredentialKind: String, Codable, CaseIterable, Sendable {
    case certificate
    /// A key for provider tokens.
    case key
}
