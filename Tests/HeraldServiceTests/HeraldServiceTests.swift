import HeraldCluster
import HeraldDevice
import HeraldGateway
import HeraldListener
import HeraldMailbox
import HeraldModel
import HeraldNATS
import HeraldProvider
import HeraldStores
import HeraldTestSupport
import HeraldTrust
import Logging
import ServiceLifecycle
import Testing

@testable import HeraldService

/// Whole services in the process of the test, on free ports and in folders of their own.
@Suite struct HeraldServiceTests {
    private static let app = "com.example.pushchat"
    private static let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    private struct Ended: Error {}

    private let temporary: TemporaryFolder

    init() throws { temporary = try TemporaryFolder() }

    @Test func `a service delivers what a provider sends`() async throws {
        let configuration = configuration("alone")
        let credentials = try await issue(in: configuration.data)
        let service = try await Starting(configuration)
        let payload = try await service.run { addresses in
            try await exchange(credentials, at: addresses[0], from: addresses[0])
        }
        #expect(payload == Self.payload)
    }

    @Test func `a node of a cluster delivers what another one takes`() async throws {
        var services: [Starting] = []
        let credentials = try await issue(in: configuration("a").data)
        for name in ["a", "b", "c"] {
            var configuration = configuration(name)
            configuration.cluster.servers = [
                NATSServerAddress(host: "127.0.0.1", port: try NATSServer.shared.port())
            ]
            configuration.cluster.node = name
            configuration.cluster.isUnverified = true
            configuration.cluster.replicas = 1
            configuration.cluster.partitions = ClusterLimits.partitions.lowerBound
            if name != "a" { configuration.cluster.key = "\(self.configuration("a").data)/trust/cluster.key" }
            services.append(try await Starting(configuration))
        }
        let payload = try await Starting.run(services) { addresses in
            try await exchange(credentials, at: addresses[1], from: addresses[2])
        }
        #expect(payload == Self.payload)
    }

    @Test func `a service that cannot listen leaves nothing open`() async throws {
        let first = try await Starting(configuration("first"))
        try await first.run { addresses in
            var configuration = configuration("second")
            configuration.gateway.listener.port = try #require(addresses[0].api)
            let second = try await HeraldService(
                configuration,
                in: ServiceProcess(logger: Self.silent, lifecycleLogger: Self.silent)
            )
            await #expect(throws: (any Error).self) { try await second.run() }
            #expect(ListeningAddresses.read(from: DataFolder(path: configuration.data)) == nil)
        }
    }

    // MARK: - Services

    /// A service that is made and not yet run.
    private struct Starting {
        let service: HeraldService
        let folder: DataFolder
        private let ready: AsyncStream<Void>
        private let isReady: AsyncStream<Void>.Continuation

        init(_ configuration: ServerConfiguration) async throws {
            let (ready, isReady) = AsyncStream.makeStream(of: Void.self)
            var process = ServiceProcess(logger: silent, lifecycleLogger: silent)
            process.announce = { if $0 == "ready" { isReady.yield() } }
            service = try await HeraldService(configuration, in: process)
            folder = DataFolder(path: configuration.data)
            (self.ready, self.isReady) = (ready, isReady)
        }

        func run<Value: Sendable>(_ body: ([ListeningAddresses]) async throws -> Value) async throws -> Value {
            try await Starting.run([self], body)
        }

        /// Runs services while the body does, which gets their addresses.
        static func run<Value: Sendable>(
            _ all: [Starting],
            _ body: ([ListeningAddresses]) async throws -> Value
        ) async throws -> Value {
            let group = ServiceGroup(configuration: .init(services: all.map(\.service), logger: silent))
            return try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask {
                    // Nobody waits any longer for services that have failed.
                    defer { for service in all { service.isReady.finish() } }
                    try await group.run()
                }
                var addresses: [ListeningAddresses] = []
                for service in all {
                    guard await service.ready.first(where: { _ in true }) != nil else {
                        try await tasks.waitForAll()
                        throw Ended()
                    }
                    addresses.append(try #require(ListeningAddresses.read(from: service.folder)))
                }
                let value = try await body(addresses)
                await group.triggerGracefulShutdown()
                try await tasks.waitForAll()
                return value
            }
        }
    }

    private func configuration(_ name: String) -> ServerConfiguration {
        var configuration = ServerConfiguration()
        configuration.data = "\(temporary.path)/\(name)"
        for listener in configuration.listeners { configuration[keyPath: listener].port = 0 }
        configuration.consolePort = 0
        return configuration
    }

    // MARK: - Clients

    private static let payload = Array(#"{"aps":{"alert":"hello"}}"#.utf8)

    private struct Credentials {
        let device: [UInt8]
        let provider: [UInt8]
        let authorities: [UInt8]
    }

    /// Makes the credentials of a device and of a provider in a new data folder.
    private func issue(in path: String) async throws -> Credentials {
        let (folder, now) = (try DataFolder.open(path, mayCreate: true), ServiceClock().now())
        let trust = try await TrustFolder.create(at: folder.path, store: TrustDatabase.open, now: now)
        let provider = try await trust.providers.issueCertificate(
            topics: [try #require(Topic(Self.app))],
            team: nil,
            environments: [.production],
            now: now
        )
        let device = try await trust.devices.enroll(name: "phone", now: now)
        return Credentials(
            device: Array(device.pem.utf8),
            provider: Array(provider.pem.utf8),
            authorities: try SafeFile.read(folder.authorityPath)
        )
    }

    /// Registers an app on a device, sends it a notification, and returns the payload that arrives.
    private func exchange(
        _ credentials: Credentials,
        at place: ListeningAddresses,
        from other: ListeningAddresses
    ) async throws -> [UInt8]? {
        var settings = DeviceConfiguration(
            host: "127.0.0.1",
            port: try #require(place.device),
            credential: try DeviceCredential(pem: credentials.device),
            authorities: credentials.authorities,
            apps: [try #require(Topic(Self.app))]
        )
        settings.serverName = "localhost"
        var sender = ProviderConfiguration(
            host: "localhost",
            port: try #require(other.api),
            credential: .certificate(pem: credentials.provider),
            authorities: credentials.authorities
        )
        sender.address = "127.0.0.1"
        let client = try DeviceClient(settings)
        return try await withProviderClient(sender) { provider in
            var received: [UInt8]?
            do {
                try await client.run { event in
                    switch event {
                    case .token(let token, let topic):
                        let token = try #require(PushToken(token.hex))
                        let answer = try await provider.send(
                            PushRequest(token: token, topic: topic, payload: Self.payload)
                        )
                        guard case .accepted = answer else {
                            Issue.record("\(answer)")
                            throw Ended()
                        }
                    case .notification(let notification):
                        received = notification.payload
                        throw Ended()
                    case .appRefused, .disconnected:
                        Issue.record("\(event)")
                        throw Ended()
                    case .connected, .removed, .settingsTaken: break
                    }
                }
            } catch is Ended {}
            return received
        }
    }
}
