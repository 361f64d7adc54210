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

    func devices(
        _ selection: DeviceSelection,
        connected: Bool?,
        offlineDays: Int?
    ) async throws -> Page<DeviceEntry> {
        var selection = selection
        selection.unseenSince = offlineDays.map { assembly.clock.now() - .seconds($0 * 86_400) }
        if connected == false { selection.isUnrevoked = true }
        let isOffline = offlineDays != nil
        if connected != nil || isOffline {
            selection.condition = { id in
                let isConnected = assembly.isConnected(id)
                return isConnected == connected ?? isConnected && !(isOffline && isConnected)
            }
        }
        let (devices, next) = try await find(selection)
        return Page(items: devices.map { entry($0) }, next: next)
    }

    /// A part of the ledger's devices, which may be one of several parts that were looked through.
    private func find(_ selection: DeviceSelection) async throws -> (devices: [EnrolledDevice], next: String?) {
        var selection = selection
        return try await asked {
            var devices: [EnrolledDevice] = []
            for _ in 0..<Self.maximumParts {
                let part = try await assembly.trust.folder.devices.page(selection)
                devices += part.items
                selection.after = part.next
                selection.limit -= part.items.count
                if part.next == nil || selection.limit <= 0 { break }
            }
            return (devices, selection.after)
        }
    }

    func announcement() async throws -> AnnouncementEntry {
        let folder = assembly.trust.folder
        let transition = try await asked {
            try await ServiceTransition(folder, assembly.configuration, now: assembly.clock.now())
        }
        guard let transition else { throw AdminError(.notFound, "devices were told nothing yet") }
        return transition.entry
    }

    func renewAnnouncement() async throws -> AnnouncementEntry {
        try await asked { try await assembly.trust.folder.announcements.renew(now: assembly.clock.now()) }
        try await reloadTrust()
        return try await announcement()
    }

    func tellByHand(_ device: String?, labels: [LabelFilter]) async throws -> AnnouncementEntry {
        guard device != nil || !labels.isEmpty else {
            throw AdminError(.badRequest, "name the devices: ?device=ID or ?label=room=hall")
        }
        _ = try await asked { try await assembly.trust.folder.devices.tell(device.map { [$0] } ?? [], labels: labels) }
        return try await announcement()
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
        try await asked { entry(try await assembly.trust.folder.devices.changeLabels(of: id) { $0 = labels }) }
    }

    func revokeDevice(_ id: String) async throws -> DeviceEntry {
        try await revoke(id) { entry(try await assembly.trust.folder.devices.revoke(id, now: assembly.clock.now())) }
    }

    func disconnectDevice(_ id: String, staysAway: Bool) async throws -> DeviceEntry {
        let device = try await asked { try await assembly.trust.folder.devices.device(id) }
        var wasConnected = false
        if let number = assembly.delivery.registry.number(of: device.id) {
            let order = NodeQuestions.DisconnectOrder(device: number.value, staysAway: staysAway)
            wasConnected = order.perform(at: assembly.delivery.postOffice)
            if !wasConnected, let cluster = assembly.storage.cluster, let node = cluster.otherHolder(of: number) {
                guard let answer = await cluster.questions.disconnect(order, at: node) else {
                    let words = "node \(node), to which the device is connected, does not answer: try again"
                    throw AdminError(.failed, words)
                }
                wasConnected = answer
            }
        }
        guard wasConnected else { throw AdminError(.conflict, "the device is not connected") }
        assembly.logger.notice("device disconnected by an operator", metadata: ["device": "\(device.id)"])
        return entry(device)
    }

    func token(of topic: Topic, in environment: PushEnvironment?, on id: String) async throws -> DeviceTokenEntry {
        let device = try await asked { try await assembly.trust.folder.devices.device(id) }
        let live = (environment.map { [$0] } ?? PushEnvironment.allCases).compactMap {
            registration(topic, $0, device.id)
        }
        guard let registration = live.first, let entry = tokenEntry(registration, device) else {
            throw AdminError(.notFound, "the app is not registered on the device")
        }
        guard live.count == 1 else {
            throw AdminError(
                .conflict,
                "the app is registered in both environments: add ?environment=production or ?environment=sandbox"
            )
        }
        return entry
    }

    func tokens(
        of topic: Topic,
        in environment: PushEnvironment?,
        _ selection: DeviceSelection
    ) async throws -> Page<DeviceTokenEntry> {
        let environment = environment ?? assembly.configuration.environment
        var selection = selection
        selection.condition = { registration(topic, environment, $0) != nil }
        let (devices, next) = try await find(selection)
        let items = devices.compactMap { device -> DeviceTokenEntry? in
            guard device.revoked == nil, let live = registration(topic, environment, device.id) else { return nil }
            return tokenEntry(live, device)
        }
        return Page(items: items, next: next)
    }

    private func tokenEntry(_ registration: Registration, _ device: EnrolledDevice) -> DeviceTokenEntry? {
        guard let app = assembly.delivery.registry.app(registration.slot.app) else { return nil }
        return DeviceTokenEntry(
            device: device.id.name,
            name: device.name,
            token: assembly.trust.seal.token(for: registration).hex,
            topic: app.topic,
            environment: app.environment
        )
    }

    private func registration(
        _ topic: Topic,
        _ environment: PushEnvironment,
        _ device: DeviceID
    ) -> Registration? {
        guard let number = assembly.delivery.registry.number(of: device),
            let app = assembly.delivery.registry.number(of: App(topic: topic, environment: environment)),
            let registration = assembly.delivery.postOffice.registration(Slot(device: number, app: app)),
            registration.isLive
        else { return nil }
        return registration
    }

    private func entry(_ device: EnrolledDevice) -> DeviceEntry {
        let number = assembly.delivery.registry.number(of: device.id)
        var entry = DeviceEntry(device, complete: assembly.trust.announcement?.content.complete)
        entry.connected = assembly.isConnected(device.id)
        if let link = number.flatMap({ assembly.delivery.postOffice.link(of: $0) }) as? MQTTConnectionLink {
            entry.connectedSince = link.connected.rfc3339
            entry.lastSeen = assembly.clock.now().rfc3339
            entry.lastAddress = link.address?.description
        } else if let seen = assembly.listeners.courier.sightings.newest(of: device.id) {
            entry.show(seen, at: seen.at)
        }
        return entry
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
                labels: request.labels ?? [:],
                for: request.device,
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
    /// The device as the trust folder has it; `complete` is the version from which on it knows all that is announced.
    package init(_ device: EnrolledDevice, complete: Int64? = nil) {
        self.init(
            id: device.id.name,
            name: device.name,
            serial: device.serial,
            created: device.created.rfc3339,
            expires: device.expires.rfc3339,
            revoked: device.revoked?.rfc3339,
            labels: device.labels.all,
            invitation: device.invitation,
            announcement: complete.map { AnnouncementState(device.announcement, complete: $0) }
        )
        if let seen = device.lastSeen { show(device.sighting, at: seen) }
    }

    /// Shows the newest moment, and the address if the sighting is of it.
    fileprivate mutating func show(_ sighting: DeviceSighting?, at seen: WallTime) {
        lastSeen = seen.rfc3339
        lastAddress = sighting.flatMap { $0.at < seen || $0.address.isEmpty ? nil : $0.address }
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
            used: invitation.taken - invitation.returned,
            lastUsed: invitation.used?.at.rfc3339,
            device: invitation.newestDevice?.name,
            labels: invitation.labels
        )
        self.code = code?.text
    }
}
