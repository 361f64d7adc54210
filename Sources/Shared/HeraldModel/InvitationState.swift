/// States of an invitation for devices.
package enum InvitationState: String, Codable, CaseIterable, Sendable {
    case open
    /// By as many devices as may use it.
    case used
    case withdrawn
    case expired
}
