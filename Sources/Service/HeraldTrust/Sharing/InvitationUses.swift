package import HeraldModel

/// The other nodes that invite devices: decides which device uses an invitation that several nodes know.
package protocol InvitationUses: Sendable {
    /// Uses up an invitation for a device, for all nodes; the same device uses it once, however often it asks.
    ///
    /// - Returns: false if other devices have used it up, or it was withdrawn; the ledger then says so.
    /// - Throws: ``TrustError/Code/unavailable`` if nobody knows; the device is then not to get a certificate.
    func use(_ invitation: Invitation, by device: DeviceID, at moment: WallTime) async throws -> Bool

    /// Whether a use is free: ``use(_:by:at:)`` has thrown for it, and its device has not asked again.
    func isAbandoned(_ use: Invitation.Use) -> Bool

    /// Takes over everything that any node had stored before this call: invitations and devices among it.
    ///
    /// - Throws: ``TrustError/Code/unavailable`` if the other nodes' cannot be learned.
    func catchUp() async throws
}
