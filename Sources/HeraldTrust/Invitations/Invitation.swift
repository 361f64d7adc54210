package import HeraldModel

/// A code that was given out, as operators see it; what makes it valid is not in it.
package struct Invitation: Hashable, Sendable {
    /// What has become of it.
    package enum State: String, Hashable, Sendable {
        case open
        case used
        case withdrawn
        case expired
    }

    package let id: String
    /// What people will call the device; nil if whoever uses the code says.
    package let name: String?
    /// SHA-256 of the code's secret (``InvitationCode/digest``).
    let digest: [UInt8]
    package let created: WallTime
    package let expires: WallTime
    /// Which device it made, and when.
    package var used: Use?
    package var withdrawn: WallTime?

    package struct Use: Hashable, Sendable {
        package let device: DeviceID
        package let at: WallTime
    }

    package func state(at now: WallTime) -> State {
        if used != nil { return .used }
        if withdrawn != nil { return .withdrawn }
        return now < expires ? .open : .expired
    }
}

/// An invitation with its code, as it is handed out, once.
package struct IssuedInvitation: Sendable {
    package let invitation: Invitation
    package let code: InvitationCode
}

extension Invitation: Encodable {
    private enum CodingKeys: String, CodingKey {
        case id, name, created, expires, used, withdrawn, device
    }

    // Every member is always there, as null where there is nothing to say; times are RFC 3339 in UTC.
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(id, forKey: .id)
        try container.encode(name, forKey: .name)
        try container.encode(created.rfc3339, forKey: .created)
        try container.encode(expires.rfc3339, forKey: .expires)
        try container.encode(used?.at.rfc3339, forKey: .used)
        try container.encode(withdrawn?.rfc3339, forKey: .withdrawn)
        try container.encode(used?.device.name, forKey: .device)
    }
}

extension IssuedInvitation: Encodable {
    private enum CodingKeys: String, CodingKey {
        case code
    }

    package func encode(to encoder: any Encoder) throws {
        try invitation.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(code.text, forKey: .code)
    }
}
