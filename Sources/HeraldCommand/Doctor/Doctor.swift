import ArgumentParser
import CVersion
import Configuration
import Foundation
import HeraldActivation
import HeraldConsole
import HeraldGateway
import HeraldListener
import HeraldMailbox
import HeraldModel
import HeraldStores
import HeraldTrust
import NIOHTTP1

/// `herald doctor`: checks for faults of the machine and the data folder that stop the service.
struct Doctor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check the machine, the configuration and the data folder, and say what to do.",
        discussion: """
            One line for each thing: ok, warn or fail, and what to do. Exits 0 if nothing fails, else 1. It changes \
            nothing, and works while the service runs and before its first start. Root checks as the owner of the data \
            folder.

            Example:
              herald doctor --config /etc/herald/herald.yaml
            """
    )

    @OptionGroup var data: DataOptions

    func run() async throws {
        let configuration = try ServerConfiguration(
            Settings(
                commandLine: data.data.map { [.data: .string($0)] } ?? [:],
                environment: ProcessInfo.processInfo.environment,
                file: data.config
            )
        )
        let findings = await DoctorRun(
            configuration: configuration,
            folder: DataFolder(path: configuration.data),
            now: ServiceClock().now()
        ).findings()
        let isFailed = findings.contains { $0.level == .fail }
        if data.json {
            try Terminal.sayJSON(DoctorReport(ok: !isFailed, checks: findings))
        } else {
            findings.map(\.line).forEach(Terminal.say)
        }
        if isFailed { throw ExitCode.failure }
    }
}

/// The findings as `--json` prints them.
private struct DoctorReport: Encodable {
    let ok: Bool
    let checks: [DoctorFinding]
}

/// Runs all checks.
struct DoctorRun {
    let configuration: ServerConfiguration
    let folder: DataFolder
    let now: WallTime

    private static let troubleshooting = "read the service's log, and docs/operations/troubleshooting.md"

    /// The remedy for a damaged folder.
    private var restore: String {
        "correct it as it says, or move the folder away and run herald restore BACKUP --data \(folder.path)"
    }

    func findings() async -> [DoctorFinding] {
        let listeners = ListeningAddresses.read(from: folder)
        // The addresses of a killed service are still there.
        let health = await self.health()
        let running = health == nil ? nil : listeners
        var findings: [DoctorFinding] =
            [.ok("configuration", "it is valid")] + (health ?? [.ok("service", "none runs on \(folder.path)")])
        findings += await ports(running)
        findings.append(descriptors(running))
        // As root sees everything, but the service does not.
        let owner = FolderOwner(of: folder.path)
        do {
            findings += try owner?.acting { onData(owner?.user ?? geteuid()) } ?? onData(geteuid())
        } catch {
            findings.append(.fail("data", "\(error)", "run herald doctor as that user"))
        }
        return findings + names
    }

    /// The health of the running service; nil if none runs.
    private func health() async -> [DoctorFinding]? {
        guard access(folder.controlSocketPath, F_OK) == 0 else { return nil }
        let client = ControlClient(folder: folder)
        let answer = try? await client.get("/health", accepting: [.serviceUnavailable], as: HealthReport.self)
        guard let answer else { return nil }
        let problems = answer.problems.map { DoctorFinding.fail("service", $0, Self.troubleshooting) }
        let warnings = (answer.warnings ?? []).map { DoctorFinding.warn("service", $0, Self.troubleshooting) }
        return problems.isEmpty ? [.ok("service", "it runs and is ready")] + warnings : problems + warnings
    }

    private func ports(_ running: ListeningAddresses?) async -> [DoctorFinding] {
        let served = [
            "api-port": running?.api, "binary-port": running?.binary, "feedback-port": running?.feedback,
            "device-port": running?.device, "activation-port": running?.activation, "console-port": running?.console,
        ]
        let wanted = [
            ("api-port", configuration.host, configuration.gateway.listener.port),
            ("binary-port", configuration.host, configuration.binary.listener.port),
            ("feedback-port", configuration.host, configuration.feedback.listener.port),
            ("device-port", configuration.host, configuration.deviceListener.port),
            ("activation-port", configuration.host, configuration.activation.listener.port),
            ("console-port", configuration.consoleHost, configuration.consolePort),
        ]
        var findings: [DoctorFinding] = []
        for (setting, host, port) in wanted where port != 0 {
            let isServed = served[setting].flatMap(\.self) == port
            let attempt = isServed ? .served : await DoctorProbes.listen(host: host, port: port)
            findings.append(PortCheck(setting: setting, host: host, port: port, attempt: attempt).finding)
        }
        return findings
    }

    private func descriptors(_ running: ListeningAddresses?) -> DoctorFinding {
        let service = running.flatMap { DoctorProbes.descriptorLimit(ofProcess: $0.pid) }
        return DescriptorCheck(
            configuration: configuration,
            limit: service ?? DescriptorLimit.raise(),
            isOfService: service != nil
        ).finding
    }

    /// The checks of the data folder and its disk, as its owner.
    private func onData(_ service: UInt32) -> [DoctorFinding] {
        do {
            _ = try DataFolder.existing(folder.path)
        } catch {
            let place = access(folder.path, F_OK) == 0 ? folder.path : SafeFile.folder(of: folder.path)
            let missing: DoctorFinding =
                access("\(folder.path)/format", F_OK) == 0
                ? .fail(
                    "data",
                    "\(error)",
                    "chown -R USER \(folder.path) gives it to the user of the service; otherwise \(restore)"
                )
                : .warn(
                    "data",
                    "there is no data folder at \(folder.path)",
                    "herald serve makes it, or name it with --data"
                )
            return [missing] + DoctorProbes.disk(place).findings + [clock(nil)]
        }
        let files = DoctorProbes.files(of: folder, service: service)
        let wrong = files.compactMap(\.finding)
        var findings = wrong.isEmpty ? [.ok("files", "owner and mode of \(files.count) files are right")] : wrong
        findings += DoctorProbes.disk(folder.path).findings
        findings.append(store)
        do {
            let ends = try TrustEnds(TrustFolder.load(at: folder.path, store: TrustDatabase.openToRead))
            findings += TrustCheck(now: now, ends: ends, hostnames: configuration.hostnames).findings
            findings.append(clock(ends.begun))
        } catch {
            let text = (error as? TrustError)?.message ?? "\(error)"
            findings += [.fail("trust", text, restore), clock(nil)]
        }
        return findings
    }

    private var store: DoctorFinding {
        do {
            guard let format = try StoreFormat.inspect(folder.databasePath) else {
                return .ok("store", "there is none yet")
            }
            return .ok("store", "its format is \(format), and this Herald writes \(StoreFormat.newest)")
        } catch {
            return .fail("store", "\(error)", restore)
        }
    }

    private func clock(_ certified: WallTime?) -> DoctorFinding {
        ClockCheck(
            now: now,
            built: ClockCheck.day(ofCommit: String(cString: herald_commit())),
            certified: certified,
            isSynchronized: DoctorProbes.isClockSynchronized()
        ).finding
    }

    private var names: [DoctorFinding] {
        let local = DoctorProbes.localAddresses()
        return configuration.hostnames.map { name in
            NameCheck(name: name, addresses: DoctorProbes.addresses(of: name), local: local).finding
        }
    }
}
