import ArgumentParser
import Foundation
import HeraldConsole
import HeraldIdentity
import HeraldMailbox
import HeraldModel
import HeraldStores
import HeraldTestSupport
import HeraldTrust
import HeraldWeb
import Logging
import NIOCore
import NIOPosix
import Testing

@testable import HeraldCommand
@testable import HeraldService

@Suite struct RunningServiceTests {
    private let temporary: TemporaryFolder
    private let folder: DataFolder
    private let trust: TrustService
    private let time = WallTime(seconds: 1_900_000_000)

    init() async throws {
        temporary = try TemporaryFolder()
        folder = try DataFolder.open(temporary.path + "/data", mayCreate: true)
        let trustFolder = try await TrustFolder.create(at: folder.path, store: TrustDatabase.open, now: time)
        trust = try await TrustService(folder: trustFolder)
    }

    private func run(_ command: any AsyncParsableCommand.Type, _ arguments: String...) async throws {
        var command = try command.parse(arguments + ["--data", folder.path])
        try await command.run()
    }

    /// Holds the folder's lock and answers at its control socket while a test asks.
    private func withService(
        _ register: (inout AdminWork) -> Void = { _ in },
        _ body: @Sendable () async throws -> Void
    ) async throws {
        let lock = try await FolderLock.take(folder)
        defer { withExtendedLifetime(lock) {} }
        let configuration = ConsoleConfiguration(
            host: "127.0.0.1",
            port: 0,
            socketPath: folder.controlSocketPath
        )
        var api = AdminWork()
        api.on(AdminAPI.clock) { [time] _ in ClockReading(now: time, adjustable: true) }
        api.on(AdminAPI.reloadTrust) { [trust, time] _ in
            if let failure = await trust.reload().failures.all.first { throw AdminError(.failed, failure.message) }
            return ServiceStatus(version: "1", pid: 1, started: time, now: time)
        }
        register(&api)
        let served = Set(api.rows.map(\.name))
        let own = ["links", "session", "sessions", "tokens", "audit", "problems", "refusals", "series", "events"]
        let console = try Console(
            configuration: configuration,
            rows: AdminAPI.all.filter { row in
                served.contains(row.name) || own.contains(String(row.path.split(separator: "/")[1]))
            },
            api: api,
            health: { HealthReport(problems: []) },
            live: LiveConsole(
                series: SeriesRecorder(metrics: PrometheusRegistry()),
                refusals: RefusalBook(provider: { _ in nil }, app: { _ in nil }),
                clock: ServiceClock(),
                findings: { [] }
            ),
            access: ConsoleAccess(adminToken: "unused", clock: ServiceClock()),
            audit: AuditFile(folder: folder.auditPath, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }),
            clock: ServiceClock(),
            metrics: PrometheusRegistry(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        let (opened, open) = AsyncStream.makeStream(of: Void.self)
        let listener = console.socket { open.yield() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await listener.run() }
            for await _ in opened { break }
            try await body()
            group.cancelAll()
            while await group.nextResult() != nil {}
        }
    }

    @Test func `what is issued is good when the command returns, and begins by the service's clock`() async throws {
        try await withService {
            try await run(ProviderKeyCommand.self, "--team", "TEAM000001", "--out", temporary.path)
            let key = try #require(try trust.folder.providerKeys().first)
            #expect(trust.providerTokens.credentials.key(key.id) != nil)
            #expect(key.created == time)
        }
    }

    @Test func `what is revoked is so when the command returns`() async throws {
        let device = try await trust.folder.devices.enroll(name: nil, now: time).record
        try await withService {
            try await run(DeviceRevoke.self, device.id.name)
            #expect(trust.isRevoked(serial: device.serial, of: .device))
        }
    }

    @Test func `names are added to a running service`() async throws {
        try await withService {
            try await run(Init.self, "--hostname", "new.example.com")
            #expect(await trust.reload().isUnchanged, "it was told")
        }
        let names = try trust.folder.serverCertificate().names.map(\.description)
        #expect(names.contains("new.example.com"))
    }

    @Test func `a service that cannot read the change says why`() async throws {
        try await withService {
            let before = try trust.folder.providerKeys().count
            try TrustFile.write(Array("garbage".utf8), to: folder.trustPath + "/token.keys", .secret)
            let error = await #expect(throws: CommandError.self) {
                try await run(ProviderKeyCommand.self, "--team", "TEAM000001", "--out", temporary.path)
            }
            #expect(error?.code == .refused)
            #expect(error?.message.contains("token.keys is damaged") == true)
            #expect(try trust.folder.providerKeys().count == before + 1, "the change itself was made")
        }
    }

    @Test func `a service that does not answer is reported`() async throws {
        let lock = try await FolderLock.take(folder)
        defer { withExtendedLifetime(lock) {} }
        let listener = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .childChannelInitializer { $0.close() }
            .bind(unixDomainSocketPath: folder.controlSocketPath)
            .get()
        await #expect(throws: CommandError(.unreachable, "")) {
            try await run(DeviceEnroll.self, "--out", temporary.path + "/d.pem")
        }
        try await listener.close()
    }

    @Test func `the socket of a killed service is not a service`() async throws {
        let lock = try await FolderLock.take(folder)
        defer { withExtendedLifetime(lock) {} }
        // Linux refuses a connection to a file in the same way.
        _ = try temporary.write("", to: "data/run/control.sock")
        try await run(DeviceEnroll.self, "--out", temporary.path + "/d.pem")
        await #expect(throws: CommandError(.noService, "")) { try await run(AppForget.self, "com.example.chat") }
    }

    @Test func `commands at the same time, without a service, do not get in each other's way`() async throws {
        let (folder, path) = (folder, temporary.path)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<8 {
                group.addTask {
                    let command = try DeviceEnroll.parse(["--out", path + "/\(number).pem", "--data", folder.path])
                    try await command.run()
                }
            }
            try await group.waitForAll()
        }
        #expect(try await trust.folder.devices.all().count == 8)
    }

    @Test func `a token's registration comes from the running service`() async throws {
        let contents = TokenContents(slot: Slot(device: DeviceNumber(3), app: AppNumber(4)), generation: 1)
        let standing = TokenReport.RegistrationState(
            device: try #require(DeviceID("lamp")),
            app: App(topic: try #require(Topic("com.example.chat")), environment: .sandbox),
            registration: Registration(slot: contents.slot, generation: 1, isLive: true, registered: time)
        )
        let folder = folder
        try await withService { api in
            api.on(AdminAPI.registration) { call in
                guard call.body == TokenReport.Query(deviceNumber: 3, appNumber: 4) else {
                    throw AdminError(.notFound, "there was never such a registration")
                }
                return standing
            }
        } _: {
            let client = ControlClient(folder: folder)
            let known = TokenReport.Query(deviceNumber: 3, appNumber: 4)
            let answer = try await client.ask(AdminAPI.registration, body: known)
            #expect(answer == standing)
            let unknown = TokenReport.Query(deviceNumber: 3, appNumber: 5)
            await #expect(throws: CommandError(.refused, "")) {
                _ = try await client.ask(AdminAPI.registration, body: unknown)
            }
        }
    }
}
