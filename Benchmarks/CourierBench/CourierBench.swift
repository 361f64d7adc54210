import ArgumentParser
import Foundation
import HeraldCourier
import HeraldDoor
import HeraldMailbox
import HeraldModel
import HeraldStores
import HeraldTrust
import Logging
import NIOCore
import NIOPosix

/// Courier, post office and durable store in one process, fed from inside: what a device receives without the provider
/// door in front of it.
@main struct CourierBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "courier-bench")

    @Option(help: "A data folder made by `herald init`.") var data: String
    @Option(help: "How many devices (bench-<n>) to wait for.") var devices = 1000
    @Option(help: "The topic that they subscribe to.") var topic = "com.example.bench"
    @Option(help: "Notifications on their way at one time.") var window = 256
    @Option(help: "Notifications per second; 0: as fast as the window allows.") var rate = 0
    @Option(help: "Payload bytes.") var payload = 300

    func run() async throws {
        let logger = Logger(label: "bench")
        let clock = ServiceClock()
        let folder = try TrustFolder.load(at: data)
        let trust = try TrustOffice(folder: folder)
        let store = try SQLiteStore(path: data + "/store/herald.db", clock: clock, logger: logger) { _ in }
        let directory = SingleNodeDirectory()
        let postOffice = PostOffice(clock: clock, store: store, directory: directory, logger: logger)
        store.report(to: postOffice)
        let registry = Registry(store: store, postOffice: postOffice, directory: directory, clock: clock)
        try await registry.load()
        let channels = ChannelOffice(clock: clock, store: store, apps: registry, logger: logger)
        let server = try folder.serverCertificate()
        let tls = DoorTLS(
            certificateChain: server.chain,
            privateKeyPEM: server.keyPEM,
            clientAuthority: PEMBundle.der(folder.deviceAuthority.certificate),
            clientCertificate: .required,
            applicationProtocols: []
        )
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let courier = Courier(
            door: DoorConfiguration(name: "devices", host: "127.0.0.1", port: 0),
            tls: try tls.makeContext(),
            group: group,
            office: ServiceOffice(
                postOffice: postOffice,
                registry: registry,
                channels: channels,
                seal: trust.seal
            ),
            trust: ServiceTrust(trust),
            clock: clock,
            logger: logger
        )
        let port = try await courier.open()
        try FileManager.default.createDirectory(atPath: data + "/run", withIntermediateDirectories: true)
        try Data("{\"device\":\(port)}\n".utf8).write(to: URL(fileURLWithPath: data + "/run/doors.json"))
        FileHandle.standardOutput.write(Data("ready\n".utf8))
        let feeder = Feeder(
            postOffice: postOffice,
            registry: registry,
            loop: group.next(),
            settings: Feeder.Settings(devices: devices, topic: topic, window: window, rate: rate, payload: payload)
        )
        await withTaskGroup { tasks in
            tasks.addTask { await postOffice.run() }
            tasks.addTask { await courier.run() }
            tasks.addTask { await feeder.run() }
            await tasks.waitForAll()
        }
    }
}
