import Foundation
import HeraldActivation
package import HeraldConsole
import HeraldGateway
import HeraldIdentity
import HeraldListener
package import HeraldModel
import HeraldStores
import HeraldTrust

/// The checks of a machine, a configuration and a data folder, before a start or while the service runs.
package struct DoctorRun {
    private let configuration: ServerConfiguration
    private let folder: DataFolder
    /// The commit of the build, which begins with its day.
    private let commit: String
    private let now: WallTime
    /// A certificate that is to become the server's; nil for none.
    private let next: String?
    /// Asks the running service for its health; nil without an answer.
    private let ask: () async -> HealthReport?

    package init(
        configuration: ServerConfiguration,
        folder: DataFolder,
        commit: String,
        now: WallTime,
        next: String? = nil,
        health ask: @escaping () async -> HealthReport?
    ) {
        self.configuration = configuration
        self.folder = folder
        self.commit = commit
        self.now = now
        self.next = next
        self.ask = ask
    }

    package func findings() async -> [DoctorFinding] {
        let health = await self.health()
        // The file of a killed service is still there.
        let running = health == nil ? nil : ListeningAddresses.read(from: folder)
        var findings: [DoctorFinding] = [.ok("configuration", "it is valid")]
        findings += await ports(running)
        if configuration.isConsoleExposed {
            findings.append(
                .warn(
                    "console",
                    "it is plain HTTP at \(configuration.consoleHost), so others can read cookies and tokens",
                    "remove console-tls: off, or let a proxy with TLS alone reach it"
                )
            )
        }
        findings.append(descriptors(running))
        do {
            try folder.checkOwner()
            findings.insert(contentsOf: health ?? [.ok("service", "none runs on \(folder.path)")], at: 1)
            // As root sees everything, but the service does not.
            let owner = FolderOwner(of: folder.path)
            let end = try owner?.act()
            defer { end?() }
            findings += await onData(owner?.user ?? geteuid(), isRunning: health != nil)
            // The health of a running node says what it sees of its cluster.
            if health == nil {
                findings += await ClusterCheck(configuration: configuration.cluster, folder: folder).findings()
            }
        } catch {
            findings.append(.fail("data", "\(error)", "run herald doctor as that user, or as root"))
        }
        return findings + names
    }

    /// The health of the running service; nil if none runs.
    private func health() async -> [DoctorFinding]? {
        guard access(folder.controlSocketPath, F_OK) == 0 else { return nil }
        guard let answer = await ask() else { return nil }
        let problems = answer.problems.map { DoctorFinding.told("service", .fail, $0) }
        let warnings = (answer.warnings ?? []).map { DoctorFinding.told("service", .warn, $0) }
        return problems.isEmpty ? [.ok("service", "it runs and is ready")] + warnings : problems + warnings
    }

    /// The listeners of the running service, or else those of the configuration.
    private func ports(_ running: ListeningAddresses?) async -> [DoctorFinding] {
        let addresses =
            running
            ?? ListeningAddresses(
                api: configuration.gateway.listener.port,
                binary: configuration.binary.listener.port,
                feedback: configuration.feedback.listener.port,
                device: configuration.deviceListener.port,
                activation: configuration.activation.listener.port,
                console: configuration.consoleMode == .off ? nil : configuration.consolePort,
                pid: 0,
                host: configuration.host,
                consoleHost: configuration.consoleHost,
                consoleTLS: configuration.isConsoleOverTLS
            )
        let (host, consoleHost) = (addresses.host, addresses.consoleHost)
        let listeners = [
            ("api-port", host, addresses.api), ("binary-port", host, addresses.binary),
            ("feedback-port", host, addresses.feedback), ("device-port", host, addresses.device),
            ("activation-port", host, addresses.activation), ("console-port", consoleHost, addresses.console),
        ]
        var findings: [DoctorFinding] = []
        var foreign: Set<String> = []
        for (setting, host) in [("host", host), ("console-host", consoleHost)] where running == nil {
            let attempt = await DoctorProbes.listen(host: host, port: 0)
            guard attempt == .foreign, foreign.insert(host).inserted else { continue }
            findings.append(PortCheck(setting: setting, host: host, port: 0, attempt: attempt).finding)
        }
        for (setting, host, port) in listeners where !foreign.contains(host) {
            guard let port, port != 0 else { continue }
            let attempt = running == nil ? await DoctorProbes.listen(host: host, port: port) : .served
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
    private func onData(_ service: UInt32, isRunning: Bool) async -> [DoctorFinding] {
        let disk = DoctorProbes.disk(nearestFolder).findings
        do {
            try folder.checkSocketPath()
            guard case .ours = try folder.condition() else {
                let remedy = "herald serve makes it, or name it with --data"
                return [.warn("data", "there is no data folder at \(folder.path)", remedy)] + disk + [clock(nil)]
            }
        } catch {
            return [.told("data", .fail, "\(error)"), clock(nil)]
        }
        let files = DoctorProbes.files(of: folder, service: service)
        let wrong = files.compactMap(\.finding)
        guard wrong.isEmpty else { return wrong + disk + [clock(nil)] }
        do {
            try folder.check()
        } catch {
            return [.told("data", .fail, "\(error)")] + disk + [clock(nil)]
        }
        return [.ok("files", "owner and mode of \(files.count) files are right")] + disk
            + [store(isRunning: isRunning)] + (await trust())
    }

    /// The data folder, or the folder in which a start makes it.
    private var nearestFolder: String {
        var path = folder.path
        var isFolder: ObjCBool = false
        while !(FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) && isFolder.boolValue),
            path != SafeFile.folder(of: path)
        {
            path = SafeFile.folder(of: path)
        }
        return path
    }

    private func store(isRunning: Bool) -> DoctorFinding {
        do {
            let path = folder.databasePath
            // A running service has read it, and it says in its health what is wrong since.
            guard let format = try isRunning ? StoreCheck.format(of: path) : StoreCheck.run(path) else {
                return .ok("store", "there is none yet")
            }
            return .ok("store", "its format is \(format), and this Herald writes \(StoreCheck.newestFormat)")
        } catch {
            return .told("store", .fail, "\(error)")
        }
    }

    /// The trust folder as a start reads it.
    private func trust() async -> [DoctorFinding] {
        do {
            let trust = try TrustFolder.load(at: folder.path, store: TrustDatabase.openToRead)
            let rewritten = try await trust.check(hostnames: configuration.hostnames, now: now)
            guard rewritten.isEmpty else {
                let remedy = "start the service, which writes it again"
                return rewritten.map { .warn("trust", "\($0) is missing or damaged", remedy) } + [clock(nil)]
            }
            _ = try await ServiceTrust.load(trust, configuration)
            _ = try ConsoleTokenFile(folder: folder).read()
            let ends = try TrustEnds(trust)
            let (names, console) = (configuration.hostnames, configuration.consoleName)
            return TrustCheck(now: now, ends: ends, hostnames: names, consoleName: console).findings
                + (try await devices(trust))
                + [try clusterKey()].compactMap(\.self) + [clock(ends.begun)]
        } catch let error as TrustError where error.code == .folderMissing {
            return [
                .warn("trust", "the first start has not ended", "start the service, which completes it"), clock(nil),
            ]
        } catch {
            return [.told("trust", .fail, "\(error)"), clock(nil)]
        }
    }

    /// Whether devices follow what the service announces, and whether they would accept the next certificate.
    private func devices(_ trust: TrustFolder) async throws -> [DoctorFinding] {
        guard let transition = try await ServiceTransition(trust, configuration, now: now)
        else {
            return [.warn("devices", "they were told nothing of the service yet", "start the service")]
        }
        let (part, unready) = ("devices", transition.unready)
        let told = transition.devices.told
        let total = unready + transition.devices.ready + told
        var findings = transition.problems.map { DoctorFinding.fail(part, $0, "do so, and check again") }
        if let next {
            let reasons = transition.reasons(against: try trust.serverCertificate(at: next))
            findings += reasons.map { .fail(part, "the change is not safe: \($0)", "then check again") }
            if reasons.isEmpty { findings.append(.ok(part, "\(next) can become the server certificate")) }
        }
        guard findings.isEmpty else { return findings }
        let byHand = told == 0 ? "" : ", \(told) of them told by hand"
        let text = "\(total - unready) of \(total) know every announced authority and address\(byHand)"
        guard transition.devices.behind > 0 else { return [.ok(part, text)] }
        return [.warn(part, text, "keep what the others know until they have come (herald device list --unready)")]
    }

    /// The finding for a cluster's node that lacks the key, and would not start.
    private func clusterKey() throws -> DoctorFinding? {
        guard FileManager.default.fileExists(atPath: folder.nodePath), configuration.cluster.key.isEmpty,
            try JoiningFolder.clusterKey(at: folder.path) == nil
        else { return nil }
        return .fail(
            "trust",
            "\(TrustLayout(data: folder.path).clusterKey) is missing",
            "copy it from another node's data folder, or name a copy with cluster-key"
        )
    }

    private func clock(_ certified: WallTime?) -> DoctorFinding {
        ClockCheck(
            now: now,
            built: ClockCheck.day(ofCommit: commit),
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
