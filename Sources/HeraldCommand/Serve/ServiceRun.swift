import Foundation
import HeraldActivation
import HeraldConsole
import HeraldCourier
import HeraldGateway
import HeraldMailbox
import HeraldModel
import HeraldStores
import HeraldTrust
import Logging
import ServiceLifecycle
import UnixSignals

/// One run of a service: opens the doors, says where they are, and runs until it is told to stop.
struct ServiceRun {
    let assembly: ServiceAssembly
    let metrics: PrometheusRegistry
    let reload: ConfigurationReload

    /// - Throws: If a door cannot be opened, or the store has failed for good.
    func run() async throws {
        let configuration = assembly.configuration
        let folder = assembly.folder
        let started = assembly.clock.now()
        // A killed service leaves its socket behind; the folder's lock says that nobody listens on it.
        unlink(folder.controlSocketPath)
        let api: Int
        let device: Int
        let binary: (binary: Int, feedback: Int)
        do {
            device = try await assembly.courier.open()
            api = try await assembly.gateway.open()
            binary = try await assembly.binaryGateway.open()
        } catch {
            await assembly.store.close()
            throw error
        }
        let activation = assembly.activation(devicePort: device)
        let watch = TrustWatch(
            trust: assembly.trust,
            gateway: assembly.gateway,
            binaryGateway: assembly.binaryGateway,
            courier: assembly.courier,
            activation: activation,
            alarm: RevocationAlarm(trust: assembly.trust, clock: assembly.clock, logger: assembly.logger),
            clock: assembly.clock,
            logger: assembly.logger
        )
        let console = Console(
            configuration: ConsoleConfiguration(
                host: configuration.consoleHost,
                port: configuration.consolePort,
                socketPath: folder.controlSocketPath,
                token: try makeAdminToken()
            ),
            administration: ServiceAdministration(
                assembly: assembly,
                watch: watch,
                started: started
            ),
            metrics: metrics,
            control: [
                TokenRoute(registry: assembly.registry, postOffice: assembly.postOffice).route,
                TokenKeyRoute(seal: assembly.trust.seal, started: started).route,
            ],
            logger: assembly.logger
        )
        assembly.drills.allowsPayloadDrills = configuration.allowsPayloadDrills
        do {
            try assembly.drillOperations.configure(configuration.drills)
        } catch {
            await assembly.store.close()
            throw error
        }
        let (ports, port) = AsyncStream.makeStream(of: Int.self)
        let (activations, activated) = AsyncStream.makeStream(of: Int.self)
        let (sockets, socket) = AsyncStream.makeStream(of: Void.self)
        let (readiness, ready) = AsyncStream.makeStream(of: Void.self)
        let announcement = Announcement(
            folder: folder,
            configuration: configuration,
            api: api,
            binary: binary,
            device: device,
            activation: { await activations.first { _ in true } },
            console: {
                guard let port = await ports.first(where: { _ in true }) else { return nil }
                return await sockets.first { _ in true } == nil ? nil : port
            },
            ready: { ready.yield() }
        )
        var services: [any Service] = [
            StoreService(store: assembly.store, failure: assembly.storeFailure),
            PostOfficeService(postOffice: assembly.postOffice),
            ChannelService(channels: assembly.channels),
            CourierService(courier: assembly.courier),
            GatewayService(gateway: assembly.gateway, binaryGateway: assembly.binaryGateway),
            watch,
            activation.door { activated.yield($0) },
            console.port { port.yield($0) },
            console.socket { socket.yield() },
            announcement,
            ReloadSignal(watch: watch, configuration: reload),
            DrillService(drills: assembly.drills),
        ]
        if let demo = assembly.demo {
            let host = configuration.host
            services.append(try demo.service(folder, host: host, apiPort: api, devicePort: device, ready: readiness))
        }
        var lifecycle = ServiceGroupConfiguration(
            services: services.map { .init(service: $0) },
            gracefulShutdownSignals: [.sigterm, .sigint],
            logger: assembly.logger
        )
        // Whatever has not ended by then is cancelled: the service stops in any case.
        lifecycle.maximumGracefulShutdownDuration = configuration.gracePeriod + .seconds(5)
        let group = ServiceGroup(configuration: lifecycle)
        defer { unlink(folder.controlSocketPath) }
        try await group.run()
    }

    /// The admin API's bearer token, new with each run.
    private func makeAdminToken() throws -> String {
        var generator = SystemRandomNumberGenerator()
        let token = (0..<4).map { _ in
            let word = String(generator.next(), radix: 16)
            return String(repeating: "0", count: 16 - word.count) + word
        }
        .joined()
        try SafeFile.write(Array((token + "\n").utf8), to: assembly.folder.adminTokenPath, mode: 0o600)
        return token
    }
}

/// Says where the doors are, once all of them are open.
struct Announcement: Service {
    let folder: DataFolder
    let configuration: ServerConfiguration
    let api: Int
    let binary: (binary: Int, feedback: Int)
    let device: Int
    /// The activation door's port, once it is open; nil if it never opens.
    let activation: @Sendable () async -> Int?
    /// The console's port, once both of its doors are open; nil if it never opens.
    let console: @Sendable () async -> Int?
    /// Called once it has been said.
    let ready: @Sendable () -> Void

    func run() async throws {
        guard let activation = await activation(), let console = await console() else { return }
        let doors = Doors(
            api: api,
            binary: binary.binary,
            feedback: binary.feedback,
            device: device,
            activation: activation,
            console: console,
            pid: getpid()
        )
        for line in doors.lines(host: configuration.host, consoleHost: configuration.consoleHost) {
            Terminal.say(line)
        }
        try doors.write(to: folder)
        Terminal.say("ready")
        ready()
        try? await gracefulShutdown()
    }
}
