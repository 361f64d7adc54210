import Foundation
import HeraldConsole
import HeraldCourier
import HeraldGateway
import HeraldMailbox
import HeraldModel
import HeraldStores
import HeraldTrust
import Logging

/// What operators may ask of a running service.
struct ServiceAdministration: Administration {
    let assembly: ServiceAssembly
    let watch: TrustWatch
    let started: WallTime

    var problems: [String] {
        var problems: [String] = []
        if !assembly.store.isAccepting {
            problems.append(
                "the store takes no notifications at the moment (the log says why): providers are answered 503"
            )
        } else if !assembly.postOffice.isAccepting {
            problems.append(
                "notifications on their way take all of notification-memory: providers are answered 503"
            )
        }
        return problems
    }

    var status: ServiceStatus {
        ServiceStatus(
            version: Herald.version,
            pid: getpid(),
            started: started,
            devicesConnected: assembly.postOffice.connectedCount,
            notificationsWaiting: assembly.store.count
        )
    }

    func journal(_ question: JournalQuestion, limit: Int) async throws -> [JournalEntry] {
        try await JournalReader(store: assembly.store, registry: assembly.registry).entries(question, limit: limit)
    }

    func channels(of bundle: Topic?, limit: Int) async throws -> [ChannelEntry] {
        guard let bundle else { return assembly.channels.summaries(of: nil, limit: limit).map { ChannelEntry($0) } }
        return PushEnvironment.allCases
            .flatMap { assembly.channels.summaries(of: App(topic: bundle, environment: $0), limit: limit) }
            .prefix(limit)
            .map { ChannelEntry($0) }
    }

    func credentials() async throws -> [CredentialEntry] {
        try asked { try assembly.trust.folder.credentials().map { CredentialEntry($0) } }
    }

    func revokeCredential(_ id: String) async throws -> CredentialEntry {
        try asked {
            let credential = try assembly.trust.folder.revokeCredential(id, now: assembly.clock.now())
            try watch.reload()
            return CredentialEntry(credential)
        }
    }

    func devices() async throws -> [DeviceEntry] {
        try asked { try assembly.trust.folder.enrolledDevices().map { entry($0) } }
    }

    func revokeDevice(_ id: String) async throws -> DeviceEntry {
        try asked {
            let device = try assembly.trust.folder.revokeDevice(id, now: assembly.clock.now())
            try watch.reload()
            return entry(device)
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
            connected: assembly.registry.number(of: device.id).map { assembly.postOffice.isConnected($0) } ?? false
        )
    }

    func reloadTrust() async throws {
        try asked { try watch.reload() }
    }

    var clock: ClockReading {
        ClockReading(now: assembly.clock.now(), adjustable: assembly.clock.isAdjustable)
    }

    func advanceClock(by duration: Duration) async throws -> ClockReading {
        guard assembly.clock.advance(by: duration) else {
            throw AdminError(.conflict, "this service's clock cannot be moved: start it with --clock adjustable")
        }
        assembly.logger.warning(
            "the service's clock was moved: not for production",
            metadata: ["by": "\(duration)", "now": "\(assembly.clock.now().rfc3339)"]
        )
        // What the new time means happens now, and not when somebody looks next.
        watch.renewServerCertificate()
        assembly.gateway.reviewCertificates()
        assembly.binaryGateway.reviewCertificates()
        assembly.courier.recheck()
        await assembly.postOffice.sweep()
        await assembly.channels.sweep()
        return clock
    }

    /// Trust's errors, as answers.
    private func asked<Answer>(_ work: () throws -> Answer) throws -> Answer {
        do {
            return try work()
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
    init(_ summary: ChannelOffice.Summary) {
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

extension CredentialEntry {
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
