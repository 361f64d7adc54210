import HeraldConsole
import HeraldGateway
import HeraldModel
import HeraldTrust

/// Starts and stops the drills of operators and of the configuration.
struct DrillOperations: Sendable {
    let service: DrillService
    let seal: TokenSeal

    var entries: [DrillEntry] { service.reports.map { DrillEntry($0) } }

    /// - Throws: `AdminError`.
    func start(_ request: DrillRequest, isConfigured: Bool = false) throws -> DrillEntry {
        let drill: Drill
        do throws(DrillMistake) {
            drill = try DrillReader.drill(request) { seal.open($0)?.slot }
        } catch {
            throw AdminError(.badRequest, error.text)
        }
        guard let report = service.start(drill, isConfigured: isConfigured) else {
            throw AdminError(.conflict, "\(DrillLimits.count) drills are active already: stop one of them")
        }
        return DrillEntry(report)
    }

    /// - Throws: `AdminError`.
    func stop(_ id: Int) throws -> DrillEntry {
        guard let report = service.stop(id) else { throw AdminError(.notFound, "no drill \(id) is active") }
        return DrillEntry(report)
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
    func configure(_ requests: [DrillRequest]) throws {
        _ = service.stopAll(onlyConfigured: true)
        for request in requests {
            do {
                _ = try start(request, isConfigured: true)
            } catch let error as AdminError {
                throw CommandError(.configuration, "drill: \(error.message)")
            }
        }
    }
}

extension DrillEntry {
    init(_ report: DrillReport) {
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
