package import HeraldIdentity
package import HeraldModel

/// The operator's view of an invitation, without its code.
package struct Invitation: Hashable, Sendable {
    package let id: String
    /// The name of the device; nil to take it from the device's request.
    package let name: String?
    /// The device that it is for, which keeps its identifier; nil for new devices.
    package var device: DeviceID?
    /// The labels of the new devices.
    package var labels: [String: String] = [:]
    /// SHA-256 of the code's secret (``InvitationCode/digest``).
    package let digest: [UInt8]
    package let created: WallTime
    package let expires: WallTime
    /// The number of devices that may use it.
    package let uses: Int
    /// The number of uses, including those that were returned.
    package var taken: Int
    /// The number of its devices that were revoked and had never connected: their uses are free again.
    package var returned = 0
    /// The newest uses, oldest first; at most ``maximumRecent``.
    package var recent: [Use]
    package var withdrawn: WallTime?

    /// The most devices of one invitation.
    package static let maximumUses = 100_000
    /// The most uses that are kept with their devices.
    package static let maximumRecent = 16

    package struct Use: Hashable, Sendable {
        /// The new device; of an invitation for a known one a name for its key.
        package let device: DeviceID
        package let at: WallTime

        package init(device: DeviceID, at: WallTime) {
            self.device = device
            self.at = at
        }
    }

    package init(
        id: String,
        name: String?,
        digest: [UInt8],
        created: WallTime,
        expires: WallTime,
        uses: Int = 1,
        taken: Int = 0,
        recent: [Use] = [],
        withdrawn: WallTime? = nil
    ) {
        self.id = id
        self.name = name
        self.digest = digest
        self.created = created
        self.expires = expires
        self.uses = uses
        self.taken = taken
        self.recent = recent
        self.withdrawn = withdrawn
    }

    package func state(at now: WallTime) -> InvitationState {
        if isUsedUp { return .used }
        if withdrawn != nil { return .withdrawn }
        return now < expires ? .open : .expired
    }
}

extension Invitation {
    /// The newest use.
    package var used: Use? { recent.last }

    package var isUsedUp: Bool { taken - returned >= uses }

    /// The device that it is for, or the newest one that has used it; nil if all uses were returned.
    package var newestDevice: DeviceID? { device ?? (taken > returned ? used?.device : nil) }

    /// Counts a use.
    package mutating func take(_ use: Use) {
        taken += 1
        recent = (recent + [use]).suffix(Invitation.maximumRecent)
    }
}

extension Invitation {
    /// The first eight bytes of a digest, by which a store finds an invitation without comparing the rest.
    package static func lookupKey(_ digest: [UInt8]) -> Int64 {
        digest.prefix(8).reduce(0) { $0 << 8 | Int64($1) }
    }

    /// Finds an invitation in constant time: compares all bytes of all digests.
    static func find(_ digest: [UInt8], in invitations: [Invitation]) -> Invitation? {
        var found: Int?
        for (index, invitation) in invitations.enumerated() {
            guard invitation.digest.count == digest.count else { continue }
            var difference: UInt8 = 0
            for byte in digest.indices { difference |= digest[byte] ^ invitation.digest[byte] }
            if difference == 0 { found = index }
        }
        return found.map { invitations[$0] }
    }
}

/// An invitation with its code, which is handed out once.
package struct IssuedInvitation: Sendable {
    package let invitation: Invitation
    package let code: InvitationCode
}
