import ArgumentParser
import Foundation
import HeraldCourier
import HeraldIdentity
import HeraldListener
import HeraldMailbox
import HeraldModel
import HeraldStores
import HeraldTrust
import Logging
import NIOCore
import NIOPosix

/// Courier, post office and durable store in one process, fed from inside: what a device receives without the provider
/// listener in front of it.
///
/// Obeys lines on its standard input: `feed <devices> <rate>` (rate 0: as fast as the window allows) and `rest`; answers
/// each with one line of JSON, and ends when its input does.
@main struct CourierBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "courier-bench")

    @Option(help: "A data folder made by `herald init`.") var data: String
    @Option(help: "The topic that the devices subscribe to.") var topic = "com.example.bench"
    @Option(help: "Notifications in flight.") var window = 256
    @Option(help: "Payload bytes.") var payload = 300
    @Flag(help: "Without journal and store: the cost of courier and post office alone.") var alone = false

    func run() async throws {
        let logger = Logger(label: "bench")
        let clock = ServiceClock()
        let folder = try TrustFolder.load(at: data, store: TrustDatabase.open)
        let trust = try await TrustService(folder: folder)
        let store = try makeStore(clock, logger)
        let directory = SingleNodeDirectory()
        let postOffice = PostOffice(clock: clock, store: store, directory: directory, logger: logger)
        store.report(to: postOffice)
        let registry = Registry(
            store: store,
            postOffice: postOffice,
            directory: directory,
            clock: clock,
            logger: logger
        )
        try await registry.load()
        let channels = ChannelService(
            clock: clock,
            store: store,
            apps: registry,
            memory: postOffice.memory,
            logger: logger
        )
        let server = try folder.serverCertificate()
        let tls = ListenerTLS(
            certificateChain: server.chain,
            privateKeyPEM: server.keyPEM,
            clientAuthority: PEMBundle.der(folder.deviceAuthority.certificate),
            clientCertificate: .required,
            applicationProtocols: []
        )
        // As many event loops as NIO_SINGLETON_GROUP_LOOP_COUNT says, as in the service.
        let group = MultiThreadedEventLoopGroup.singleton
        let courier = Courier(
            listener: ListenerConfiguration(name: "devices", host: "127.0.0.1", port: 0),
            tls: try tls.makeContext(),
            group: group,
            services: CourierServices(
                registry: registry,
                postOffice: postOffice,
                channels: channels,
                tokens: trust.seal,
                trust: trust
            ),
            trust: trust,
            clock: clock,
            logger: logger
        )
        let port = try await courier.open()
        try FileManager.default.createDirectory(atPath: data + "/run", withIntermediateDirectories: true)
        try Data("{\"device\":\(port)}\n".utf8).write(to: URL(fileURLWithPath: data + "/run/listeners.json"))
        say("ready")
        let feeder = Feeder(
            postOffice: postOffice,
            registry: registry,
            loop: group.next(),
            settings: Feeder.Settings(topic: topic, window: window, payload: payload)
        )
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { await postOffice.run() }
            tasks.addTask { await courier.run() }
            try await obey(feeder)
            tasks.cancelAll()
        }
        Foundation.exit(0)
    }

    private func makeStore(
        _ clock: ServiceClock,
        _ logger: Logger
    ) throws -> any PostOffice.Store & RegistryStore & ChannelStore {
        if alone { return NoStore() }
        return try SQLiteStore(path: data + "/store/herald.db", clock: clock, logger: logger) { error in
            FileHandle.standardError.write(Data("\(error)\n".utf8))
            Foundation.exit(1)
        }
    }

    private func obey(_ feeder: Feeder) async throws {
        while let line = readLine() {
            let words = line.split(separator: " ")
            if words.count == 3, words[0] == "feed", let devices = Int(words[1]), let rate = Int(words[2]), rate >= 0 {
                let count = try await feeder.feed(devices, rate: rate)
                say("{\"fed\":\(count)}")
            } else if words == ["rest"] {
                try await feeder.stop()
                say("{\"fed\":0}")
            } else {
                throw ValidationError("not understood: \(line)")
            }
        }
    }

    private func say(_ line: String) {
        FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }
}
