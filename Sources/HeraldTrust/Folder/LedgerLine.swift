import HeraldModel

/// An entry as it is written.
struct LedgerLine: Codable {
    var event: String
    var id: String
    var at: String
    var serial: String?
    var team: String?
    var topics: [Topic]?
    var environments: [PushEnvironment]?
    var name: String?
    var expires: String?
    var invitation: String?
    /// What is kept of a code: SHA-256, lower-case hex.
    var digest: String?

    init(_ event: CredentialLedger.Event) {
        switch event {
        case .begun(let moment):
            self.event = "begun"
            id = "ledger"
            at = moment.rfc3339
        case .credential(let credential):
            self.event = credential.kind == .key ? "provider key" : "provider certificate"
            id = credential.id
            at = credential.created.rfc3339
            serial = credential.serial
            team = credential.team
            topics = credential.topics
            environments = credential.environments.sorted { $0.rawValue < $1.rawValue }
            expires = credential.expires?.rfc3339
        case .device(let device, let invitation):
            self.event = "device"
            id = device.id.name
            at = device.created.rfc3339
            serial = device.serial
            name = device.name
            expires = device.expires.rfc3339
            self.invitation = invitation
        case .deviceRenewed(let device, let serial, let expires, let moment):
            self.event = "device renewed"
            id = device.name
            at = moment.rfc3339
            self.serial = serial
            self.expires = expires.rfc3339
        case .invitation(let invitation):
            self.event = "invitation"
            id = invitation.id
            at = invitation.created.rfc3339
            name = invitation.name
            expires = invitation.expires.rfc3339
            digest = Hex.text(invitation.digest)
        case .invitationWithdrawn(let id, let moment):
            self.event = "invitation withdrawn"
            self.id = id
            at = moment.rfc3339
        case .credentialRevoked(let id, let moment):
            self.event = "credential revoked"
            self.id = id
            at = moment.rfc3339
        case .deviceRevoked(let device, let moment):
            self.event = "device revoked"
            id = device.name
            at = moment.rfc3339
        }
    }

    /// The entry; nil if the line lacks something, or says something that cannot be.
    var entry: CredentialLedger.Event? {
        guard let moment = WallTime(rfc3339: at) else { return nil }
        switch event {
        case "begun":
            return .begun(at: moment)
        case "provider certificate":
            guard let serial, Hex.bytes(serial) != nil, let expires = self.moment(of: expires) else { return nil }
            return credential(.certificate, serial: serial, created: moment, expires: expires)
        case "provider key":
            return credential(.key, serial: nil, created: moment, expires: nil)
        case "device":
            guard let device = DeviceID(id), let serial, Hex.bytes(serial) != nil,
                let expires = self.moment(of: expires)
            else { return nil }
            let record = EnrolledDevice(id: device, name: name, serial: serial, created: moment, expires: expires)
            return .device(record, invitation: invitation)
        case "device renewed":
            guard let device = DeviceID(id), let serial, Hex.bytes(serial) != nil,
                let expires = self.moment(of: expires)
            else { return nil }
            return .deviceRenewed(device, serial: serial, expires: expires, at: moment)
        case "invitation":
            guard let expires = self.moment(of: expires), let digest = digest.flatMap(Hex.bytes) else { return nil }
            return .invitation(Invitation(id: id, name: name, digest: digest, created: moment, expires: expires))
        case "invitation withdrawn":
            return .invitationWithdrawn(id: id, at: moment)
        case "credential revoked":
            return .credentialRevoked(id: id, at: moment)
        case "device revoked":
            return DeviceID(id).map { .deviceRevoked($0, at: moment) }
        default:
            return nil
        }
    }

    private func moment(of text: String?) -> WallTime? {
        text.flatMap(WallTime.init(rfc3339:))
    }

    private func credential(
        _ kind: Credential.Kind,
        serial: String?,
        created: WallTime,
        expires: WallTime?
    ) -> CredentialLedger.Event? {
        guard let topics, let environments else { return nil }
        return .credential(
            Credential(
                id: id,
                kind: kind,
                serial: serial,
                team: team,
                topics: topics,
                environments: Set(environments),
                created: created,
                expires: expires
            )
        )
    }
}
