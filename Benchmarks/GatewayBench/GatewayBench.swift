import ArgumentParser
import Crypto
import Foundation
import HeraldGateway
import HeraldIdentity
import HeraldListener
import HeraldMailbox
import HeraldModel
import HeraldStores
import HeraldTrust
import Logging
import NIOCore
import NIOPosix
import Synchronization

/// The provider API alone, for measuring what accepting a notification costs: TLS, HTTP/2, provider token, device token,
/// payload, hand-over and answer, without a store and without devices.
///
/// It writes what a client needs into the folder (`tokens`, one device token a line; `bearer`, the provider token;
/// `AuthKey_<id>.p8`, the key of that token; `run/listeners.json`, the port) and says `ready`.
@main
struct GatewayBench: AsyncParsableCommand {
    @Option(help: "A new folder for the authority, the device tokens and the provider token.")
    var data: String

    @Option(help: "How many device tokens.")
    var devices = 10_000

    func run() async throws {
        let clock = ServiceClock()
        let trust = try await TrustFolder.create(
            at: data,
            hostnames: ["localhost"],
            store: TrustDatabase.open,
            now: clock.now()
        )
        let team = "TEAM000001"
        let key = try await trust.providers.makeKey(
            team: team,
            topics: [],
            environments: [.production],
            now: clock.now()
        )
        let service = try await TrustService(folder: trust)
        let tokens = (0..<max(1, devices)).map { number in
            service.seal.seal(
                TokenContents(slot: Slot(device: DeviceNumber(UInt64(number) + 1), app: AppNumber(1)), generation: 1)
            )
            .hex
        }
        let bearer = try ProviderToken.sign(
            key: P256.Signing.PrivateKey(pemRepresentation: key.pem),
            keyID: key.credential.id,
            team: team,
            issued: clock.now()
        )
        try FileManager.default.createDirectory(atPath: data + "/run", withIntermediateDirectories: true)
        try write(tokens.joined(separator: "\n") + "\n", to: "tokens")
        try write(bearer, to: "bearer")
        try write(key.pem, to: "AuthKey_\(key.credential.id).p8")
        let server = try trust.serverCertificate()
        let tls = ListenerTLS(
            certificateChain: server.chain,
            privateKeyPEM: server.keyPEM,
            clientAuthority: PEMBundle.der(trust.providerAuthority.certificate),
            clientCertificate: .optional,
            applicationProtocols: ["h2"]
        )
        let gateway = Gateway(
            configuration: GatewayConfiguration(host: "127.0.0.1", port: 0, environment: .production),
            group: MultiThreadedEventLoopGroup.singleton,
            context: try tls.makeContext(),
            admission: Admission(trust: service, apps: OneApp()),
            sink: Acceptor(),
            clock: clock,
            logger: Logger(label: "bench")
        )
        let port = try await gateway.open()
        try write("{\"api\":\(port)}\n", to: "run/listeners.json")
        FileHandle.standardOutput.write(Data("ready\n".utf8))
        await gateway.run()
    }

    private func write(_ text: String, to name: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: data + "/" + name))
    }
}

private struct OneApp: AppDirectory {
    private let bench = Topic("com.example.bench").map { App(topic: $0, environment: .production) }

    func app(_ number: AppNumber) -> App? { number == AppNumber(1) ? bench : nil }

    func number(of app: App) -> AppNumber? { app == bench ? AppNumber(1) : nil }

    func isRegistered(_ app: App) -> Bool { number(of: app) != nil }

    func team(thatBrought app: App) -> String? { nil }
}

/// Settles every completion, by the way that a store's would take.
private final class Acceptor: NotificationSink {
    let isOverloaded = false
    let longestStorage = Duration.seconds(30 * 86_400)

    func post(_ envelope: Envelope) -> PostDecision {
        envelope.completion?.settle(.accepted)
        return .pending
    }

    func discard(_ envelope: Envelope, as state: JournalState) -> PostDecision {
        post(envelope)
    }

    func refuse(at now: WallTime, _ line: () -> JournalEvent) {
        // There is no journal.
    }

    func record(_ state: JournalState, about notification: HeraldModel.Notification) {
        // There is no journal.
    }
}
