import Foundation
import HeraldConsole
import HeraldGateway
import HeraldMailbox
import HeraldModel
import Logging
import ServiceLifecycle

/// A whole service on a data folder: stores, listeners, console.
///
/// Several run in one process, each on a folder of its own. What the process has once is ``ServiceProcess``.
package struct HeraldService: Service {
    private let assembly: ServiceAssembly
    private let lock: FolderLock
    private let process: ServiceProcess

    /// Takes the data folder, opens the stores, and joins the cluster if the configuration names one.
    ///
    /// Nothing listens yet. Either ``run()`` or ``close()`` follows.
    /// - Throws: An error that tells the operator what to do. Nothing is left open then.
    package init(_ configuration: ServerConfiguration, in process: ServiceProcess) async throws {
        var configuration = configuration
        try DataFolder(path: configuration.data).checkSocketPath()
        let folder = try DataFolder.open(configuration.data, mayCreate: true)
        lock = try await FolderLock.take(folder)
        ListeningAddresses.remove(from: folder)
        let descriptors = try DescriptorShares(among: configuration, of: DescriptorLimit.raise())
        if let shares = descriptors.apply(to: &configuration) {
            process.logger.log(
                level: descriptors.isScarce ? .notice : .debug,
                "the limit of open files allows fewer connections; raise LimitNOFILE= or ulimit -Hn for more",
                metadata: ["files": "\(descriptors.limit)", "connections": "\(shares)"]
            )
        }
        self.process = process
        ServeRecord(pid: getpid()).write(to: folder)
        func forget() { ServeRecord.remove(from: folder) }
        assembly = try await closingOnFailure(forget) { [configuration] in
            try await ServiceAssembly.make(configuration, folder: folder, in: process)
        }
    }

    /// The parts that a program in the same process moves.
    package var controls: ServiceControls { ServiceControls(assembly) }

    /// Closes a service that does not come to run.
    package func close() async {
        await assembly.storage.close()
        ServeRecord.remove(from: assembly.folder)
        lock.release()
    }

    /// Opens the listeners, announces their addresses, and serves until it is told to stop.
    ///
    /// A graceful shutdown of the task stops it, and so do the signals of the process.
    /// - Throws: If a listener cannot be opened, or the store has failed permanently.
    package func run() async throws {
        let folder = assembly.folder
        // A killed service leaves its socket behind. We hold the folder's lock, so nobody listens on it.
        unlink(folder.controlSocketPath)
        let audit = AuditFile(folder: folder.auditPath, logger: assembly.logger)
        // A program that has run several services may still hold this one.
        defer { lock.release() }
        defer {
            audit.close()
            unlink(folder.controlSocketPath)
            ListeningAddresses.remove(from: folder)
        }
        let group = try await closingOnFailure(assembly.storage.close) { try await makeGroup(audit) }
        await process.stop?.onStop { await group.triggerGracefulShutdown() }
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                // Ends on cancellation, too.
                try? await gracefulShutdown()
                await group.triggerGracefulShutdown()
            }
            defer { tasks.cancelAll() }
            try await group.run()
        }
        ServeRecord.remove(from: folder)
    }

    /// Opens the listeners for providers and devices, and makes everything that runs.
    private func makeGroup(_ audit: AuditFile) async throws -> ServiceGroup {
        let configuration = assembly.configuration
        let started = assembly.clock.now()
        try assembly.storage.cluster?.check()
        let access = try ConsoleAccess(for: assembly)
        // Before the first request can come.
        assembly.trials.catcher.start(configuration.catches)
        assembly.trials.drills.allowsPayloadDrills = configuration.allowsPayloadDrills
        let ports = try await assembly.listeners.open()
        let watches = ServiceWatches(assembly, devicePort: ports.device)
        let console = try ServiceConsole(
            assembly,
            watches: watches,
            ports: ports,
            access: access,
            audit: audit,
            metrics: process.metrics,
            started: started
        )
        try await assembly.trials.cluster?.start()
        try await assembly.drillOperations.configure(configuration.drills)
        let list = ServiceList(assembly: assembly, process: process, watches: watches, console: console)
        let services = try list.services(ports, access)
        var lifecycle = ServiceGroupConfiguration(
            services: services.map { .init(service: $0) },
            gracefulShutdownSignals: process.signals,
            logger: process.lifecycleLogger
        )
        // Cancels whatever has not ended by then.
        lifecycle.maximumGracefulShutdownDuration = configuration.gracePeriod + .seconds(5)
        return ServiceGroup(configuration: lifecycle)
    }
}

extension ConsoleAccess {
    /// The callers that the console of a service knows, with a new admin token.
    convenience init(for assembly: ServiceAssembly) throws {
        let file = ConsoleTokenFile(folder: assembly.folder)
        let tokens = try file.read()
        self.init(
            adminToken: try Self.makeAdminToken(at: assembly.folder.adminTokenPath),
            tokens: tokens,
            isOverTLS: assembly.listeners.consoleTLS != nil,
            clock: ServiceClock(),
            save: { try file.write($0) }
        )
    }

    /// The admin API's bearer token, new with each run.
    private static func makeAdminToken(at path: String) throws -> String {
        let token = Hex.random(bytes: 32)
        try SafeFile.write(Array((token + "\n").utf8), to: path, mode: 0o600)
        return token
    }
}
