import AsyncHTTPClient
import Foundation
import HeraldActivation
import HeraldCluster
import HeraldCourier
import HeraldDevice
import HeraldGateway
import HeraldIdentity
import HeraldListener
import HeraldMailbox
import HeraldModel
import HeraldNATS
import HeraldProvider
import HeraldStores
import HeraldTestSupport
import HeraldTrust
import Logging
import NIOCore
import NIOHTTP1
import ServiceLifecycle
import Testing

@testable import HeraldService

/// Whole services in the process of the test, on free ports and in folders of their own.
@Suite struct HeraldServiceTests {
    static let app = "com.example.pushchat"
    static let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    struct Ended: Error {}

    let temporary: TemporaryFolder

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

    @Test func `a node of a cluster delivers what another one takes, and ends connections of another one`() async throws
    {
        let credentials = try await issue(in: configuration("a").data)
        let services = try await cluster(["a", "b", "c"])
        let payload = try await Starting.run(services) { addresses in
            try await disconnect(credentials, at: addresses[0], through: services[1])
            return try await exchange(credentials, at: addresses[1], from: addresses[2])
        }
        #expect(payload == Self.payload)
    }

    @Test func `a device that an operator disconnects is back at once, unless it is told to stay away`() async throws {
        let credentials = try await issue(in: configuration("alone").data)
        let service = try await Starting(configuration("alone"))
        try await service.run { addresses in
            try await disconnect(credentials, at: addresses[0], through: service)
        }
    }

    @Test func `as many devices as an invitation has uses are activated at once, at a listener with fewer places`()
        async throws
    {
        let count = 20
        var configuration = configuration("fleet")
        configuration.activation.listener.maximumConnections = 16
        let (trust, code) = try await invite(in: configuration.data, uses: count)
        let activated = try await Starting(configuration).run { addresses in
            try await withThrowingTaskGroup(of: DeviceID.self) { group in
                for number in 0..<count {
                    let activation = try activation("device-\(number)", at: addresses[0])
                    group.addTask { try await activation.activate(code: code.text).id }
                }
                return try await group.reduce(into: Set()) { $0.insert($1) }
            }
        }
        #expect(activated.count == count)
        let devices = try await trust.devices.page(DeviceSelection(limit: count + 1)).items
        #expect(Set(devices.map(\.id)) == activated)
        #expect(try await trust.invitations.page(after: nil, limit: 2).items.map(\.taken) == [count])
    }

    @Test func `an activation waits as long as the service asks for, and a refused one leaves nothing`() async throws {
        var configuration = configuration("wrong")
        configuration.activation.wrongCodes = 1
        configuration.activation.wrongCodeInterval = .seconds(1)
        let (trust, code) = try await invite(in: configuration.data, uses: 1)
        let wrong = InvitationCode(authority: try #require(try trust.publicAuthorities().first))
        try await Starting(configuration).run { addresses in
            let activation = try activation("device", at: addresses[0])
            await #expect(throws: EnrollmentError.self) { try await activation.activate(code: wrong.text) }
            #expect(!TrustFile.exists(activation.folder.path))
            let id = try await activation.activate(code: code.text).id
            #expect(try await trust.devices.device(id.name).id == id)
        }
    }

    /// Makes a data folder with an invitation.
    private func invite(in data: String, uses: Int) async throws -> (TrustFolder, InvitationCode) {
        let (folder, now) = (try DataFolder.open(data, mayCreate: true), ServiceClock().now())
        let trust = try await TrustFolder.create(at: folder.path, store: TrustDatabase.open, now: now)
        let made = try await trust.invitations.make(name: nil, lifetime: .seconds(3600), uses: uses, now: now)
        return (trust, try #require(made.first).code)
    }

    private func activation(_ name: String, at place: ListeningAddresses) throws -> DeviceActivation {
        let address = try ServiceAddress("https://localhost:\(try #require(place.activation))")
        var activation = DeviceActivation(service: address, folder: DeviceFolder("\(temporary.path)/\(name)"))
        (activation.timeout, activation.patience) = (.patience, .patience * 2)
        return activation
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

    /// The nodes of a cluster; the first one makes its key.
    private func cluster(_ names: [String]) async throws -> [Starting] {
        var services: [Starting] = []
        for name in names {
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
        return services
    }

    /// A service that is made and not yet run.
    struct Starting {
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

    func configuration(_ name: String) -> ServerConfiguration {
        var configuration = ServerConfiguration()
        configuration.data = "\(temporary.path)/\(name)"
        for listener in configuration.listeners {
            configuration[keyPath: listener].port = 0
            configuration[keyPath: listener].handshakeTimeout = .patience
        }
        configuration.unknownAge = .patience
        configuration.activation.idleTimeout = .patience
        configuration.courier.connectTimeout = .patience
        configuration.courier.longestArrivalWait = .patience
        configuration.courier.connectPatience = .patience * 2
        configuration.courier.writeTimeout = .patience
        configuration.gateway.timeouts.preface = .patience
        configuration.gateway.timeouts.write = .patience
        configuration.gateway.http2.bodyTimeout = .patience
        configuration.gateway.http2.replyTimeout = .patience
        configuration.gateway.http2.settingsTimeout = .patience
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

    private func device(_ credentials: Credentials, at place: ListeningAddresses) throws -> DeviceConfiguration {
        var settings = DeviceConfiguration(
            host: "127.0.0.1",
            port: try #require(place.device),
            credential: try DeviceCredential(pem: credentials.device),
            authorities: credentials.authorities,
            apps: [try #require(Topic(Self.app))]
        )
        settings.serverName = "localhost"
        (settings.connectTimeout, settings.answerTimeout) = (.patience, .patience)
        return settings
    }

    /// Makes a request of the admin API, and returns the status of its answer.
    private func post(_ uri: String, to socket: String) async throws -> UInt {
        let url = try #require(URL(httpURLWithSocketPath: socket, uri: uri))
        var request = HTTPClientRequest(url: url.absoluteString)
        request.method = .POST
        return try await HTTPClient.shared.execute(request, timeout: TimeAmount(.patience)).status.code
    }

    /// Connects a device, and disconnects it through the admin API of a node: it comes back, and then stays away.
    private func disconnect(
        _ credentials: Credentials,
        at place: ListeningAddresses,
        through node: Starting
    ) async throws {
        let settings = try device(credentials, at: place)
        let (client, id) = (try DeviceClient(settings), settings.credential.id)
        var (connections, pauses) = (0, [Duration?]())
        do {
            try await client.run { event in
                if case .connected = event {
                    connections += 1
                    let query = connections == 1 ? "" : "?stay_away=true"
                    var status: UInt
                    // Another node hears a moment later that the device is connected.
                    repeat {
                        let socket = node.folder.controlSocketPath
                        status = try await post("/v1/devices/\(id)/disconnect\(query)", to: socket)
                    } while status == 409
                    #expect(status == 200)
                }
                if case .disconnected(_, let pause) = event {
                    pauses.append(pause)
                    if pauses.count == 2 { throw Ended() }
                }
            }
        } catch is Ended {}
        #expect(connections == 2)
        #expect(try #require(pauses[0]) <= ReconnectionLimits().shortestPause)
        #expect(try #require(pauses[1]) >= ReconnectionLimits().longestPause / 2)
    }

    /// Registers an app on a device, sends it a notification, and returns the payload that arrives.
    private func exchange(
        _ credentials: Credentials,
        at place: ListeningAddresses,
        from other: ListeningAddresses
    ) async throws -> [UInt8]? {
        var sender = ProviderConfiguration(
            host: "localhost",
            port: try #require(other.api),
            credential: .certificate(pem: credentials.provider),
            authorities: credentials.authorities
        )
        sender.address = "127.0.0.1"
        (sender.timeout, sender.connections.pingTimeout) = (.patience, .patience)
        let client = try DeviceClient(try device(credentials, at: place))
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
                    case .connected, .removed, .settingsTaken, .subscribed, .channelRefused, .announced,
                        .announcementRefused:
                        break
                    }
                }
            } catch is Ended {}
            return received
        }
    }
}
