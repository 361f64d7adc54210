import HeraldConsole
import HeraldGateway
import HeraldModel
import HeraldTrust
import ServiceLifecycle

/// Ends drills that are over, and reminds of those that are on.
struct DrillService: Service {
    let drills: DrillDesk

    func run() async throws {
        await cancelWhenGracefulShutdown { await drills.run() }
    }
}

/// Drills as operators and the configuration ask for them.
struct DrillOperations: Sendable {
    let desk: DrillDesk
    let seal: TokenSeal

    var entries: [DrillEntry] { desk.reports.map { DrillEntry($0) } }

    /// - Throws: `AdminError`.
    func start(_ request: DrillRequest, isConfigured: Bool = false) throws -> DrillEntry {
        let drill: Drill
        do throws(DrillMistake) {
            drill = try DrillReader.drill(request) { seal.open($0)?.slot }
        } catch {
            throw AdminError(.badRequest, error.text)
        }
        guard let report = desk.start(drill, isConfigured: isConfigured) else {
            throw AdminError(.conflict, "\(DrillLimits.count) drills are on already: stop one of them")
        }
        return DrillEntry(report)
    }

    /// - Throws: `AdminError`.
    func stop(_ id: Int) throws -> DrillEntry {
        guard let report = desk.stop(id) else { throw AdminError(.notFound, "no drill \(id) is on") }
        return DrillEntry(report)
    }

    /// Checks drills of the configuration, whose tokens only this service can open.
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

    /// Makes the configuration's drills those that are on of it.
    /// - Throws: ``CommandError/Code/configuration`` if one of them cannot be; those before it are on.
    func configure(_ requests: [DrillRequest]) throws {
        _ = desk.stopAll(onlyConfigured: true)
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
