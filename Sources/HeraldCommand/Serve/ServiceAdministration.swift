import Foundation
import HeraldConsole
import HeraldCourier
import HeraldGateway
import HeraldMailbox
import HeraldModel
import HeraldStores
import HeraldTrust
import Logging

/// The admin API of a running service.
struct ServiceAdministration: Administration {
    let assembly: ServiceAssembly
    let watch: TrustWatch
    let clockWatch: ClockWatch
    let started: WallTime

    var problems: [String] {
        // With them, the rest follows.
        if let problems = assembly.cluster?.problems, !problems.isEmpty { return problems }
        var problems: [String] = []
        if let error = assembly.store.displacement {
            problems.append("\(error): providers get 503")
        } else if !assembly.engine.isAccepting {
            problems.append(
                "the store takes no notifications at the moment (the log says why): providers get 503"
            )
        } else if !assembly.postOffice.isAccepting {
            problems.append(
                "notifications in flight take all of notification-memory: providers get 503"
            )
        }
        return problems
    }

    var warnings: [String] {
        ownWarnings + (assembly.cluster?.warningsOfAll ?? [])
    }

    /// The warnings about this process and its folder.
    private var ownWarnings: [String] {
        let damaged = assembly.store.damagedRows
        let damage = damaged == 0 ? nil : "damaged rows of the store were left out (\(damaged)): check the disk"
        return [watch.warning, clockWatch.warning, damage].compactMap(\.self) + (assembly.cluster?.warningsOfNode ?? [])
    }

    /// The state of this node, for the others of its cluster.
    var nodeReport: NodeReport {
        NodeReport(
            devicesConnected: assembly.postOffice.connectedCount,
            problems: problems,
            warnings: ownWarnings
        )
    }

    var status: ServiceStatus {
        ServiceStatus(
            version: Version.number,
            pid: getpid(),
            started: started,
            devicesConnected: assembly.postOffice.connectedCount,
            notificationsWaiting: assembly.engine.count
        )
    }

    func journal(_ question: JournalQuestion, limit: Int) async throws -> JournalAnswer {
        try await assembly.journal.answer(question, limit: limit)
    }

    func channels(of bundle: Topic?, limit: Int) async throws -> [ChannelEntry] {
        guard let bundle else { return assembly.channels.summaries(of: nil, limit: limit).map { ChannelEntry($0) } }
        return PushEnvironment.allCases
            .flatMap { assembly.channels.summaries(of: App(topic: bundle, environment: $0), limit: limit) }
            .prefix(limit)
            .map { ChannelEntry($0) }
    }

    func apps(of topic: Topic?, onlyUnused: Bool, limit: Int) async throws -> [AppEntry] {
        let usages = try await assembly.registry.appUsages()
        let apps =
            usages
            .filter { (topic == nil || $0.record.app.topic == topic) && ($0.isUnused || !onlyUnused) }
            .prefix(limit)
            .map { entry($0) }
        guard !onlyUnused else { return apps }
        // Topics that a team owns, and that no app has yet.
        let known = Set(usages.map { TopicScope.bundle(of: $0.record.app.topic) })
        let claims = assembly.trust.providerTokens.credentials.claims.all.values
            .filter { (topic == nil || $0.topic == topic) && !known.contains($0.topic) }
            .sorted { $0.topic.name < $1.topic.name }
        return apps + claims.prefix(limit - apps.count).map { AppEntry($0.topic, owner: AppEntry.Owner($0)) }
    }

    func forgetApp(_ topic: Topic, in environment: PushEnvironment?) async throws -> [AppEntry] {
        let environments = environment.map { [$0] } ?? PushEnvironment.allCases
        // All or none, as far as nothing changes meanwhile.
        let used = try await assembly.registry.appUsages().first { usage in
            let app = usage.record.app
            return app.topic == topic && environments.contains(app.environment) && !usage.isUnused
        }
        if let used { throw Self.isUsed(used) }
        var forgotten: [AppEntry] = []
        for environment in environments {
            guard let usage = try await assembly.registry.forget(App(topic: topic, environment: environment)) else {
                continue
            }
            guard usage.isUnused else { throw Self.isUsed(usage) }
            assembly.logger.notice(
                "app name forgotten",
                metadata: ["topic": "\(topic)", "environment": "\(environment.rawValue)"]
            )
            forgotten.append(entry(usage))
        }
        guard !forgotten.isEmpty else {
            throw AdminError(.notFound, "no app has the name \(topic), or a device is registering it at this moment")
        }
        return forgotten
    }

    private static func isUsed(_ usage: AppUsage) -> AdminError {
        let app = usage.record.app
        return AdminError(
            .conflict,
            "\(app.topic) is used in \(app.environment.rawValue): devices \(usage.devices), channels \(usage.channels)"
        )
    }

    private func entry(_ usage: AppUsage) -> AppEntry {
        let claim = assembly.trust.providerTokens.credentials.claims.claim(of: usage.record.app.topic)
        let owner = claim.map { AppEntry.Owner($0) }
        return switch usage.record.origin {
        case .device(let number):
            AppEntry(
                usage,
                device: assembly.registry.device(number)?.name ?? "#\(number.value)",
                team: nil,
                owner: owner
            )
        case .team(let team): AppEntry(usage, device: nil, team: team, owner: owner)
        case nil: AppEntry(usage, device: nil, team: nil, owner: owner)
        }
    }

    func credentials() async throws -> [CredentialEntry] {
        let own = assembly.trust.consoleKey.map { CredentialEntry(console: $0) }
        return try await asked {
            try await assembly.trust.folder.providers.all().map { CredentialEntry($0) } + [own].compactMap(\.self)
        }
    }

    func revokeCredential(_ id: String) async throws -> CredentialEntry {
        guard id != ConsoleCredential.id else {
            throw AdminError(.conflict, "the console's own key is in no file, and ends with the service")
        }
        return try await revoke(id) {
            CredentialEntry(try await assembly.trust.folder.providers.revoke(id, now: assembly.clock.now()))
        }
    }

    func devices() async throws -> [DeviceEntry] {
        try await asked { try await assembly.trust.folder.devices.all().map { entry($0) } }
    }

    func revokeDevice(_ id: String) async throws -> DeviceEntry {
        try await revoke(id) { entry(try await assembly.trust.folder.devices.revoke(id, now: assembly.clock.now())) }
    }

    /// Revokes a peer, and applies it to open connections.
    ///
    /// As long as that fails, a repetition gets the same error, and not that the peer is revoked.
    private func revoke<Entry>(_ id: String, _ revoke: () async throws -> Entry) async throws -> Entry {
        try await asked {
            let outcome: Result<Entry, TrustError>
            do {
                outcome = .success(try await revoke())
            } catch let error as TrustError where error.code == .alreadyRevoked {
                outcome = .failure(error)
            }
            do {
                try await watch.reload()
            } catch let failure as TrustError {
                throw AdminError(
                    .failed,
                    """
                    \(id) is revoked, but may not be in force yet, because trust could not be reloaded: \(failure). The \
                    service tries again every second: correct this, then repeat the request, which gets 409 once the \
                    revocation is in force
                    """
                )
            }
            return try outcome.get()
        }
    }

    private func entry(_ device: EnrolledDevice) -> DeviceEntry {
        DeviceEntry(
            id: device.id.name,
            name: device.name,
            serial: device.serial,
            created: device.created.rfc3339,
            expires: device.expires.rfc3339,
            revoked: device.revoked?.rfc3339,
            connected: assembly.registry.number(of: device.id).map { isConnected($0) } ?? false
        )
    }

    /// Whether a device is connected to this node, or to another one of its cluster.
    private func isConnected(_ device: DeviceNumber) -> Bool {
        assembly.postOffice.isConnected(device) || assembly.cluster?.isHeldElsewhere(device) == true
    }

    func reloadTrust() async throws {
        try await asked { try await watch.reload() }
    }

    var clock: ClockReading {
        ClockReading(
            now: assembly.clock.now(),
            adjustable: assembly.clock.isAdjustable,
            jump: assembly.clock.guardState.deviation
        )
    }

    func acceptClock() async -> ClockReading {
        await clockWatch.accept()
        await assembly.postOffice.sweep()
        await assembly.channels.sweep()
        return clock
    }

    func advanceClock(by duration: Duration) async throws -> ClockReading {
        guard assembly.clock.advance(by: duration) else {
            throw AdminError(.conflict, "this service's clock cannot be moved: start it with --clock adjustable")
        }
        assembly.logger.warning(
            "the service's clock was moved: not for production",
            metadata: ["by": "\(duration)", "now": "\(assembly.clock.now().rfc3339)"]
        )
        // Everything that is due at the new time happens now.
        await watch.renewServerCertificate()
        assembly.gateway.reviewCertificates()
        assembly.binaryGateway.reviewCertificates()
        assembly.courier.recheck()
        await assembly.postOffice.sweep()
        await assembly.channels.sweep()
        return clock
    }

    var drills: [DrillEntry] { assembly.drillOperations.entries }

    func allDrills() async -> [DrillEntry] { await assembly.drillOperations.allEntries() }

    func startDrill(_ request: DrillRequest) async throws -> DrillEntry {
        try await assembly.drillOperations.start(request)
    }

    func stopDrill(_ id: Int) async throws -> DrillEntry {
        try await assembly.drillOperations.stop(id)
    }

    func stopDrills() async throws -> [DrillEntry] {
        try await assembly.drillOperations.stopAll()
    }

    /// Translates trust's errors into the admin API's.
    private func asked<Answer>(_ work: () async throws -> Answer) async throws -> Answer {
        do {
            return try await work()
        } catch let error as TrustError {
            let code: AdminError.Code =
                switch error.code {
                case .unknownID: .notFound
                case .alreadyRevoked: .conflict
                case .invalidArgument: .badRequest
                default: .failed
                }
            throw AdminError(code, error.message)
        }
    }
}

extension ChannelEntry {
    init(_ summary: ChannelService.Summary) {
        self.init(
            id: summary.channel.id.base64,
            topic: summary.app.topic,
            environment: summary.app.environment,
            policy: summary.channel.storage.rawValue,
            created: summary.channel.created.rfc3339,
            subscribers: summary.feed.subscribers,
            published: summary.feed.published,
            delivered: summary.feed.delivered,
            stored: summary.hasStoredMessage
        )
    }
}

extension AppEntry.Owner {
    init(_ claim: TopicClaim) {
        self.init(team: claim.team, since: claim.since, origin: claim.origin.rawValue)
    }
}

extension CredentialEntry {
    /// The key with which the console sends: valid until the process ends.
    init(console key: ProviderKey) {
        self.init(
            id: ConsoleCredential.id,
            kind: .key,
            serial: nil,
            team: nil,
            topics: [],
            environments: PushEnvironment.allCases,
            created: key.created.rfc3339,
            expires: nil,
            revoked: nil
        )
    }

    init(_ credential: Credential) {
        self.init(
            id: credential.id,
            kind: credential.kind == .key ? .key : .certificate,
            serial: credential.serial,
            team: credential.team,
            topics: credential.topics,
            environments: credential.environments.sorted { $0.rawValue < $1.rawValue },
            created: credential.created.rfc3339,
            expires: credential.expires?.rfc3339,
            revoked: credential.revoked?.rfc3339
        )
    }
}
