import Foundation
import HeraldConsole
import HeraldCourier
import HeraldGateway
import HeraldIdentity
import HeraldMailbox
import HeraldModel
import HeraldStores
import HeraldTrust
import Logging

/// The admin API of a running service.
package struct ServiceAdministration: Sendable {
    let assembly: ServiceAssembly
    let watch: TrustWatch
    let clockWatch: ClockWatch
    let started: WallTime

    var problems: [String] {
        // Problems of the cluster explain the others.
        if let problems = assembly.storage.cluster?.problems, !problems.isEmpty { return problems }
        return ownProblem.map { [$0.what] } ?? []
    }

    /// The reason why this process takes no notifications, whatever its cluster does.
    var ownProblem: ProblemFinding? {
        if let error = assembly.storage.store.displacement {
            return ProblemFinding(.storeGone, "\(error): providers get 503")
        }
        guard !assembly.delivery.postOffice.isAccepting else { return nil }
        guard assembly.storage.engine.isAccepting else {
            // A moment later it takes more.
            if assembly.storage.engine.isOverloaded { return nil }
            return ProblemFinding(
                .storeStopped,
                "the store takes no notifications at the moment (the log says why): providers get 503"
            )
        }
        return ProblemFinding(
            .memoryFull,
            "notifications in flight take all of notification-memory: providers get 503"
        )
    }

    /// The fault of a service to which more is sent than it can store.
    var overload: String? {
        guard assembly.delivery.postOffice.isOverloaded else { return nil }
        return "notifications come faster than they can be stored: providers get 503 for what is too much"
    }

    var warnings: [String] {
        ownWarnings + (assembly.storage.cluster?.warningsOfAll ?? [])
    }

    /// The faults of what devices are told of the service; a file that cannot be read is in the warning of its reload.
    var transition: [String] {
        ((try? ServiceTransition(assembly.trust.folder, assembly.configuration)) ?? nil)?.problems ?? []
    }

    /// The warnings about this process and its folder.
    private var ownWarnings: [String] {
        let damaged = assembly.storage.store.damagedRows
        let damage = damaged == 0 ? nil : "damaged rows of the store were left out (\(damaged)): check the disk"
        return [watch.warning, clockWatch.warning, damage, overload].compactMap(\.self) + transition
            + (assembly.storage.cluster?.warningsOfNode ?? [])
    }

    /// The state of this node, for the others of its cluster.
    var nodeReport: NodeReport {
        NodeReport(
            devicesConnected: assembly.delivery.postOffice.connectedCount,
            problems: problems,
            warnings: ownWarnings
        )
    }

    var status: ServiceStatus {
        var status = ServiceStatus(
            version: Version.number,
            pid: getpid(),
            started: started,
            now: assembly.clock.now()
        )
        status.hostname = assembly.configuration.hostnames.first
        status.environments = assembly.delivery.registry.environments
        status.mode = assembly.configuration.consoleMode
        status.devicesConnected = assembly.delivery.postOffice.connectedCount
        status.notificationsWaiting = assembly.storage.engine.count
        status.drills = drills
        let catching = ServiceInbox(assembly).catching
        status.catching = catching.topics == .off ? nil : catching
        status.clockMovedSeconds = assembly.clock.shift == .zero ? nil : assembly.clock.shift.components.seconds
        status.diskFreeBytes = assembly.storage.store.freeSpace
        return status
    }

    func fullStatus() async -> ServiceStatus {
        var status = status
        // Without the journal, the rest is still to be known.
        if let span = try? await assembly.storage.store.journalSpan() {
            status.journal = ServiceStatus.Journal(first: span.first, last: span.last)
        }
        return status
    }

    func forgetApp(_ topic: Topic, in environment: PushEnvironment?) async throws -> [AppEntry] {
        let environments = environment.map { [$0] } ?? PushEnvironment.allCases
        // All or none, as far as nothing changes meanwhile.
        let used = try await assembly.delivery.registry.appUsages().first { usage in
            let app = usage.record.app
            return app.topic == topic && environments.contains(app.environment) && !usage.isUnused
        }
        if let used { throw Self.isUsed(used) }
        var forgotten: [AppEntry] = []
        for environment in environments {
            guard let usage = try await assembly.delivery.registry.forget(App(topic: topic, environment: environment))
            else {
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

    func entry(_ usage: AppUsage) -> AppEntry {
        var entry =
            switch usage.record.origin {
            case .device(let number):
                AppEntry(usage, device: assembly.delivery.registry.device(number)?.name ?? "#\(number.value)")
            case .team(let team): AppEntry(usage, team: team)
            case nil: AppEntry(usage)
            }
        entry.show(assembly.trust.providerTokens.credentials.claims.claim(of: entry.topic))
        return entry
    }

    /// Revokes a peer, and applies it to open connections.
    ///
    /// As long as that fails, a repetition gets the same error, and not that the peer is revoked.
    func revoke<Entry>(_ id: String, _ revoke: () async throws -> Entry) async throws -> Entry {
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
        await assembly.delivery.postOffice.sweep()
        await assembly.delivery.channels.sweep()
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
        assembly.listeners.gateway.reviewCertificates()
        assembly.listeners.binaryGateway.reviewCertificates()
        assembly.listeners.courier.recheck()
        await assembly.delivery.postOffice.sweep()
        await assembly.delivery.channels.sweep()
        return clock
    }

    var drills: [DrillEntry] { assembly.drillOperations.entries }

    /// The health of the service, with what is caught.
    func health() -> HealthReport {
        HealthReport(
            problems: problems,
            warnings: warnings,
            drills: drills.map(\.words),
            notes: ServiceInbox(assembly).notes
        )
    }

    /// Translates trust's errors into the admin API's.
    func asked<Answer>(_ work: () async throws -> Answer) async throws -> Answer {
        do {
            return try await work()
        } catch let error as TrustError {
            let code: AdminError.Code =
                switch error.code {
                case .unknownID: .notFound
                case .alreadyRevoked: .conflict
                case .invalidArgument, .badRequest: .badRequest
                case .tooMany, .noSigningKey: .conflict
                default: .failed
                }
            throw AdminError(code, error.message)
        }
    }
}
