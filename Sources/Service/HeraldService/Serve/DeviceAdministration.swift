import HeraldConsole
import HeraldCourier
package import HeraldIdentity
import HeraldListener
import HeraldMailbox
package import HeraldModel
package import HeraldTrust
import Logging

/// Devices and invitations.
extension ServiceAdministration {
    /// The most parts of the ledger that one request looks through.
    private static let maximumParts = 10

    func devices(_ page: PageRequest, text: String?, connected: Bool?) async throws -> Page<DeviceEntry> {
        var selection = DeviceSelection(after: page.after, limit: page.limit, text: text)
        if let connected { selection.condition = { isConnected($0) == connected } }
        return try await asked {
            var devices: [EnrolledDevice] = []
            for _ in 0..<Self.maximumParts {
                let part = try await assembly.trust.folder.devices.page(selection)
                devices += part.items
                selection.after = part.next
                selection.limit -= part.items.count
                if part.next == nil || selection.limit <= 0 { break }
            }
            return Page(items: devices.map { entry($0) }, next: selection.after)
        }
    }

    func device(_ id: String) async throws -> DeviceEntry {
        let device = try await asked { try await assembly.trust.folder.devices.device(id) }
        var entry = entry(device)
        guard let number = assembly.delivery.registry.number(of: device.id) else {
            (entry.apps, entry.waiting) = ([], 0)
            return entry
        }
        let registrations = assembly.delivery.registry.registrations(of: number)
        let slots = registrations.filter(\.isLive).map { RegisteredSlot($0.slot, generation: $0.generation) }
        let waiting = try await assembly.storage.engine.waiting(in: slots)
        let bySlot = Dictionary(waiting.map { ($0.notification.slot, $0) }, uniquingKeysWith: { $1 })
        let apps = registrations.compactMap { one in
            assembly.delivery.registry.app(one.slot.app).map {
                DeviceAppEntry($0, one, waiting: bySlot[one.slot].map { WaitingEntry($0) })
            }
        }
        entry.apps = apps.sorted {
            ($0.topic.name, $0.environment.rawValue) < ($1.topic.name, $1.environment.rawValue)
        }
        entry.waiting = waiting.count
        return entry
    }

    func setLabels(_ labels: [String: String], of id: String) async throws -> DeviceEntry {
        try await asked { entry(try await assembly.trust.folder.devices.setLabels(labels, of: id)) }
    }

    func revokeDevice(_ id: String) async throws -> DeviceEntry {
        try await revoke(id) { entry(try await assembly.trust.folder.devices.revoke(id, now: assembly.clock.now())) }
    }

    func disconnectDevice(_ id: String) async throws -> DeviceEntry {
        let device = try await asked { try await assembly.trust.folder.devices.device(id) }
        guard let number = assembly.delivery.registry.number(of: device.id), isConnected(number) else {
            throw AdminError(.conflict, "the device is not connected")
        }
        try await assembly.delivery.registry.disconnect(number)
        assembly.logger.notice("device disconnected by an operator", metadata: ["device": "\(device.id)"])
        return entry(device)
    }

    func token(of topic: Topic, in environment: PushEnvironment?, on id: String) async throws -> DeviceTokenEntry {
        let device = try await asked { try await assembly.trust.folder.devices.device(id) }
        let live = (environment.map { [$0] } ?? PushEnvironment.allCases).compactMap { registration(topic, $0, device) }
        guard let registration = live.first, let app = assembly.delivery.registry.app(registration.slot.app) else {
            throw AdminError(.notFound, "the app is not registered on the device")
        }
        guard live.count == 1 else {
            throw AdminError(
                .conflict,
                "the app is registered in both environments: add ?environment=production or ?environment=sandbox"
            )
        }
        let contents = TokenContents(slot: registration.slot, generation: registration.generation)
        return DeviceTokenEntry(
            token: assembly.trust.seal.seal(contents).hex,
            topic: app.topic,
            environment: app.environment
        )
    }

    private func registration(
        _ topic: Topic,
        _ environment: PushEnvironment,
        _ device: EnrolledDevice
    ) -> Registration? {
        guard let number = assembly.delivery.registry.number(of: device.id),
            let app = assembly.delivery.registry.number(of: App(topic: topic, environment: environment)),
            let registration = assembly.delivery.postOffice.registration(Slot(device: number, app: app)),
            registration.isLive
        else { return nil }
        return registration
    }

    private func entry(_ device: EnrolledDevice) -> DeviceEntry {
        let number = assembly.delivery.registry.number(of: device.id)
        var entry = DeviceEntry(device)
        entry.connected = number.map { isConnected($0) } ?? false
        if let link = number.flatMap({ assembly.delivery.postOffice.link(of: $0) }) as? MQTTConnectionLink {
            entry.connectedSince = link.connected.rfc3339
            entry.lastSeen = assembly.clock.now().rfc3339
            entry.lastAddress = link.address?.description
        } else if let seen = assembly.listeners.courier.sightings.newest(of: device.id) {
            entry.show(seen)
        }
        return entry
    }

    private func isConnected(_ device: DeviceID) -> Bool {
        assembly.delivery.registry.number(of: device).map { isConnected($0) } ?? false
    }

    // MARK: - Invitations

    func invitations(_ page: PageRequest) async throws -> Page<InvitationEntry> {
        try await asked {
            let part = try await assembly.trust.folder.invitations.page(after: page.after, limit: page.limit)
            let now = assembly.clock.now()
            return Page(items: part.items.map { InvitationEntry($0, at: now) }, next: part.next)
        }
    }

    func invite(_ request: InvitationRequest) async throws -> InvitationEntry {
        let days = request.days ?? 1
        guard (1...365).contains(days) else { throw AdminError(.badRequest, "days must be a number from 1 to 365") }
        return try await asked {
            let now = assembly.clock.now()
            let made = try await assembly.trust.folder.invitations.make(
                name: request.name,
                lifetime: .seconds(days * 86_400),
                uses: request.uses ?? 1,
                now: now
            )
            guard let issued = made.first else { throw AdminError(.failed, "no invitation was made") }
            return InvitationEntry(issued.invitation, code: issued.code, at: now)
        }
    }

    func withdrawInvitation(_ id: String) async throws -> InvitationEntry {
        try await asked {
            let now = assembly.clock.now()
            return InvitationEntry(try await assembly.trust.folder.invitations.withdraw(id, now: now), at: now)
        }
    }
}

extension DeviceEntry {
    /// The device as the trust folder has it.
    package init(_ device: EnrolledDevice) {
        self.init(
            id: device.id.name,
            name: device.name,
            serial: device.serial,
            created: device.created.rfc3339,
            expires: device.expires.rfc3339,
            revoked: device.revoked?.rfc3339,
            labels: device.labels.all,
            invitation: device.invitation
        )
        if let seen = device.sighting { show(seen) }
    }

    fileprivate mutating func show(_ seen: DeviceSighting) {
        lastSeen = seen.at.rfc3339
        lastAddress = seen.address.isEmpty ? nil : seen.address
    }
}

extension InvitationEntry {
    package init(_ invitation: Invitation, code: InvitationCode? = nil, at now: WallTime) {
        self.init(
            id: invitation.id,
            name: invitation.name,
            state: invitation.state(at: now),
            created: invitation.created.rfc3339,
            expires: invitation.expires.rfc3339,
            withdrawn: invitation.withdrawn?.rfc3339,
            uses: invitation.uses,
            used: invitation.taken,
            lastUsed: invitation.used?.at.rfc3339,
            device: invitation.used?.device.name
        )
        self.code = code?.text
    }
}
