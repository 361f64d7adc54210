import HeraldConsole
package import HeraldGateway
import HeraldModel
import HeraldTrust

/// Starts and stops the drills of operators and of the configuration.
struct DrillOperations: Sendable {
    let service: DrillService
    let seal: TokenSeal
    /// The drills of the cluster; nil for a service of one node.
    let cluster: ClusterDrills?

    /// The active drills of this node.
    var entries: [DrillEntry] { service.reports.map { DrillEntry($0) } }

    /// The active drills of all nodes.
    func allEntries() async -> [DrillEntry] { await cluster?.entries() ?? entries }

    /// - Throws: `AdminError`.
    func start(_ request: DrillRequest, isConfigured: Bool = false) async throws -> DrillEntry {
        let drill: Drill
        do throws(DrillMistake) {
            drill = try DrillReader.drill(request) { seal.open($0)?.slot }
        } catch {
            throw AdminError(.badRequest, error.text)
        }
        let isFull = AdminError(.conflict, "\(DrillLimits.count) drills are active already: stop one of them")
        if let cluster {
            guard entries.count < DrillLimits.count else { throw isFull }
            return try await cluster.start(request, drill, isConfigured: isConfigured)
        }
        guard let report = service.start(drill, isConfigured: isConfigured) else { throw isFull }
        return DrillEntry(report)
    }

    /// Gives a drill with a lease its whole time again.
    /// - Throws: `AdminError`.
    func renew(_ id: Int) async throws -> DrillEntry {
        if let cluster { return try await cluster.renew(id) }
        guard let report = service.renew(id) else { throw Self.notRenewed(id) }
        return DrillEntry(report)
    }

    static func notRenewed(_ id: Int) -> AdminError {
        AdminError(.notFound, "no drill \(id) with a lease is active: start it again, with --lease")
    }

    /// - Throws: `AdminError`.
    func stop(_ id: Int) async throws -> DrillEntry {
        if let cluster { return try await cluster.stop(id) }
        guard let report = service.stop(id) else { throw AdminError(.notFound, "no drill \(id) is active") }
        return DrillEntry(report)
    }

    /// Stops all drills, or those of this node's configuration.
    /// - Throws: `AdminError`.
    func stopAll(onlyConfigured: Bool = false) async throws -> [DrillEntry] {
        if let cluster { return try await cluster.stopAll(onlyConfigured: onlyConfigured) }
        return service.stopAll(onlyConfigured: onlyConfigured).map { DrillEntry($0) }
    }

    /// Checks drills of the configuration.
    ///
    /// Only this service can open their tokens.
    /// - Throws: ``CommandError/Code/configuration``.
    func check(_ requests: [DrillRequest]) throws {
        for request in requests {
            do throws(DrillMistake) {
                _ = try DrillReader.drill(request) { seal.open($0)?.slot }
            } catch {
                throw CommandError(.configuration, "drill: \(error.text)")
            }
        }
    }

    /// Replaces the configured drills that are on.
    /// - Throws: ``CommandError/Code/configuration`` if one cannot start; the ones before it are on.
    func configure(_ requests: [DrillRequest]) async throws {
        do {
            _ = try await stopAll(onlyConfigured: true)
            for request in requests { _ = try await start(request, isConfigured: true) }
        } catch let error as AdminError {
            throw CommandError(.configuration, "drill: \(error.message)")
        }
    }
}

extension DrillEntry {
    package init(_ report: DrillReport) {
        self.init(
            id: report.id,
            kind: report.drill.kind.name,
            what: report.drill.description,
            from: report.isConfigured ? "configuration" : "operator",
            started: report.started.rfc3339,
            ends: report.ends.rfc3339,
            secondsLeft: Double(report.remaining.wholeMilliseconds) / 1000,
            hits: report.hits,
            seed: report.drill.seed
        )
    }
}
