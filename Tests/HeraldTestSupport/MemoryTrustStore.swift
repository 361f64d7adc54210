package import HeraldIdentity
package import HeraldModel
package import HeraldTrust
import Synchronization

/// The ledger in memory.
package final class MemoryTrustStore: TrustStore {
    private struct Contents {
        var certificates: [Credential] = []
        var devices: [EnrolledDevice] = []
        /// The device that another node adds after the next attempt to revoke one.
        var arriving: EnrolledDevice?
        var invitations: [Invitation] = []
        var claims: [Topic: TopicClaim] = [:]
        var claimsVersion: Int64 = 1
        var failure: TrustError?

        /// An invitation with the uses that are free again.
        func counted(_ invitation: Invitation) -> Invitation {
            var invitation = invitation
            invitation.returned = devices.count { one in
                one.invitation == invitation.id && one.revoked != nil && one.seen == nil
            }
            return invitation
        }

        func usable(_ id: String) -> Int? {
            invitations.firstIndex { $0.id == id && !counted($0).isUsedUp && $0.withdrawn == nil }
        }

        mutating func use(_ id: String, _ use: Invitation.Use) -> Bool {
            guard let index = usable(id) else { return false }
            invitations[index].take(use)
            return true
        }
    }

    private let contents = Mutex(Contents())
    /// Where each claim comes before it is written: when it begins, and when it goes on.
    package let claims = Meeting()

    package init() {}

    /// Makes every call fail, until it is called with nil.
    package func fail(with error: TrustError?) {
        contents.withLock { $0.failure = error }
    }

    /// Adds a device after the next attempt to revoke one, as another node does.
    package func addAtRevocation(_ device: EnrolledDevice) {
        contents.withLock { $0.arriving = device }
    }

    private func with<Value>(_ body: (inout Contents) throws -> Value) throws -> Value {
        try contents.withLock { contents in
            if let failure = contents.failure { throw failure }
            return try body(&contents)
        }
    }

    package func add(_ certificate: Credential) async throws -> Bool {
        try with { contents in
            guard !contents.certificates.contains(where: { $0.id == certificate.id }) else { return false }
            contents.certificates.append(certificate)
            contents.claimsVersion += 1
            return true
        }
    }

    package func certificates(after id: String?, limit: Int) async throws -> [Credential] {
        try with { contents in
            let rest = contents.certificates.filter { $0.id > id ?? "" }.sorted { $0.id < $1.id }
            return Array(rest.prefix(limit))
        }
    }

    package func certificate(_ id: String) async throws -> Credential? {
        try with { contents in contents.certificates.first { $0.id == id } }
    }

    package func revokeCertificate(_ id: String, at moment: WallTime) async throws -> Bool {
        try with { contents in
            let isRevoked = contents.certificates.revoke(id, at: moment)
            if isRevoked { contents.claimsVersion += 1 }
            return isRevoked
        }
    }

    package func topicClaims(after version: Int64?) async throws -> TopicClaims? {
        try with { contents in
            guard contents.claimsVersion != version else { return nil }
            return TopicClaims(
                version: contents.claimsVersion,
                contents.claims.values,
                certificateTopics: contents.certificates.filter { $0.revoked == nil }.flatMap(\.topics),
                credentials: Dictionary(contents.certificates.map { ($0.serial ?? "", $0.id) }) { $1 }
            )
        }
    }

    package func claim(_ claims: [TopicClaim], takesOver: Bool) async throws {
        for _ in 1...2 { await self.claims.come() }
        try with { contents in
            let former = contents.claims
            for claim in claims {
                let uses = contents.claims.values.count { $0.team == claim.team && $0.origin == .use }
                guard claim.origin != .use || uses < TopicClaims.maximumUses else { continue }
                let owned = contents.claims[claim.topic]
                if let owned, owned.team == claim.team {
                    guard owned.origin == .use, claim.origin != .use else { continue }
                } else if owned != nil, !takesOver {
                    continue
                }
                contents.claims[claim.topic] = claim
            }
            if contents.claims != former { contents.claimsVersion += 1 }
        }
    }

    package func release(_ topics: [Topic]) async throws -> Topic? {
        try with { contents in
            if let unowned = topics.first(where: { contents.claims[$0] == nil }) { return unowned }
            for topic in topics { contents.claims[topic] = nil }
            contents.claimsVersion += 1
            return nil
        }
    }

    package func add(_ device: EnrolledDevice, invitation: String?) async throws -> Bool {
        try with { contents in
            guard !contents.devices.contains(where: { $0.id == device.id }) else { return false }
            if let invitation {
                let use = Invitation.Use(device: device.id, at: device.created)
                guard contents.use(invitation, use) else { return false }
            }
            contents.devices.append(device)
            return true
        }
    }

    package func renew(
        _ device: DeviceID,
        with certificate: EnrolledDevice.Certificate,
        kept: [UInt8]?,
        use: (invitation: String, Invitation.Use)?,
        limit: Int,
        now: WallTime
    ) async throws -> Bool {
        try with { contents in
            guard let index = contents.devices.firstIndex(where: { $0.id == device && $0.revoked == nil }),
                contents.devices[index].certificates.count(where: { $0.expires >= now }) < limit
            else { return false }
            if let use, !contents.use(use.invitation, use.1) { return false }
            contents.devices[index].renew(with: certificate)
            contents.devices[index].keep(kept)
            return true
        }
    }

    package func devices(_ selection: DeviceSelection) async throws -> LedgerPage<EnrolledDevice> {
        try with { contents in
            let text = selection.text?.lowercased() ?? ""
            let found = contents.devices.filter { device in
                guard device.id.name > selection.after ?? "" else { return false }
                if let condition = selection.condition, !condition(device.id) { return false }
                if let version = selection.lacking {
                    let state = AnnouncementState(device.announcement, complete: version)
                    if device.revoked != nil || state == .ready || state == .told { return false }
                }
                let lines = "\n\(device.labels.lines)\n"
                guard selection.labels.allSatisfy({ lines.contains("\n\($0)\($0.value == nil ? "=" : "\n")") }) else {
                    return false
                }
                if let since = selection.unseenSince {
                    guard device.revoked == nil, device.lastSeen ?? device.created <= since else { return false }
                }
                if selection.isUnrevoked, device.revoked != nil { return false }
                if selection.isUnused, device.revoked != nil || device.seen != nil { return false }
                let words = "\(device.id)\n\(device.name ?? "")\n\(device.labels.lines)".lowercased()
                return text.isEmpty || words.contains(text)
            }
            return LedgerPage(
                Array(found.sorted { $0.id.name < $1.id.name }.prefix(selection.limit + 1)),
                limit: selection.limit,
                id: \.id.name
            )
        }
    }

    package func changeLabels(
        of id: DeviceID,
        _ change: @escaping @Sendable (_ labels: inout [String: String]) throws -> Void
    ) async throws -> Bool {
        try with { contents in
            guard let index = contents.devices.firstIndex(where: { $0.id == id }) else { return false }
            var labels = contents.devices[index].labels.all
            try change(&labels)
            let next = contents.devices[index].labels.revision + 1
            guard let labels = DeviceLabels(lines: DeviceLabels.lines(labels), revision: next) else { return false }
            contents.devices[index].labels = labels
            return true
        }
    }

    package func note(_ sightings: [DeviceSighting]) async throws {
        try with { contents in
            for one in sightings {
                guard let index = contents.devices.firstIndex(where: { $0.id == one.device }) else { continue }
                contents.devices[index].sighting = one
                let seen = contents.devices[index].seen
                guard seen.map({ one.at - $0 >= DeviceSighting.sharedEvery }) ?? true else { continue }
                if seen == nil { contents.devices[index].keep(nil) }
                contents.devices[index].seen = one.at
                contents.devices[index].announcement = max(contents.devices[index].announcement, one.announcement ?? 0)
            }
        }
    }

    package func announcementCounts(_ version: Int64, now: WallTime) async throws -> AnnouncementCounts {
        try with { contents in
            var counts = AnnouncementCounts()
            for device in contents.devices where device.revoked == nil {
                let state = AnnouncementState(device.announcement, complete: version)
                counts.add(1, state, isExpired: device.certificates.allSatisfy { $0.expires < now })
            }
            return counts
        }
    }

    package func tell(_ devices: [DeviceID], of version: Int64) async throws -> Int {
        try with { contents in
            let told = contents.devices.indices.filter { index in
                let device = contents.devices[index]
                return devices.contains(device.id) && device.revoked == nil && device.announcement <= 0
            }
            for index in told { contents.devices[index].announcement = -version }
            return told.count
        }
    }

    package func device(_ id: DeviceID) async throws -> EnrolledDevice? {
        try with { contents in contents.devices.first { $0.id == id } }
    }

    package func revokeDevice(_ id: DeviceID, at moment: WallTime) async throws -> Bool {
        try with { contents in
            defer { if let device = contents.arriving.take() { contents.devices.append(device) } }
            return contents.devices.revoke(id, at: moment)
        }
    }

    package func add(_ invitations: [Invitation], limit: Int, now: WallTime) async throws -> AddedInvitations {
        try with { contents in
            let open = contents.invitations.count { $0.state(at: now) == .open }
            guard open + invitations.count <= limit else { return .tooMany }
            let all = contents.invitations + invitations
            guard Set(all.map(\.id)).count == all.count else { return .identifierTaken }
            contents.invitations = all
            return .added
        }
    }

    package func invitations(after id: String?, limit: Int) async throws -> [Invitation] {
        try with { contents in
            let rest = contents.invitations.filter { $0.id > id ?? "" }.sorted { $0.id < $1.id }
            return rest.prefix(limit).map { contents.counted($0) }
        }
    }

    package func invitation(_ id: String) async throws -> Invitation? {
        try with { contents in contents.invitations.first { $0.id == id }.map { contents.counted($0) } }
    }

    package func invitations(lookupKey: Int64) async throws -> [Invitation] {
        try with { contents in
            contents.invitations.filter { Invitation.lookupKey($0.digest) == lookupKey }.map { contents.counted($0) }
        }
    }

    package func withdrawInvitation(_ id: String, at moment: WallTime) async throws -> Bool {
        try with { contents in
            guard let index = contents.usable(id) else { return false }
            contents.invitations[index].withdrawn = moment
            return true
        }
    }

    package func revokedSerials(of kind: PeerKind) async throws -> [String: WallTime] {
        try with { contents in
            var serials: [String: WallTime] = [:]
            switch kind {
            case .provider:
                for one in contents.certificates { if let serial = one.serial { serials[serial] = one.revoked } }
            case .device:
                for one in contents.devices { for each in one.certificates { serials[each.serial] = one.revoked } }
            }
            return serials
        }
    }

    package func revokedDevices(after count: Int) async throws -> Set<DeviceID>? {
        try with { contents in
            let devices = Set(contents.devices.filter { $0.revoked != nil }.map(\.id))
            return devices.count == count ? nil : devices
        }
    }
}

private protocol Revocable {
    associatedtype ID: Equatable
    var id: ID { get }
    var revoked: WallTime? { get set }
}

extension Credential: Revocable {}
extension EnrolledDevice: Revocable {}

extension Array where Element: Revocable {
    /// - Returns: false if the element is unknown or revoked.
    fileprivate mutating func revoke(_ id: Element.ID, at moment: WallTime) -> Bool {
        guard let index = firstIndex(where: { $0.id == id && $0.revoked == nil }) else { return false }
        self[index].revoked = moment
        return true
    }
}

extension EnrolledDevice {
    fileprivate mutating func keep(_ certificate: [UInt8]?) {
        guard kept.certificate != nil || certificate != nil else { return }
        kept = KeptCertificate(certificate, revision: kept.revision + 1)
    }
}
