import ArgumentParser
import Crypto
import Foundation
import HeraldDoor
import HeraldGateway
import HeraldMailbox
import HeraldModel
import HeraldTrust
import Logging
import NIOCore
import NIOPosix
import Synchronization

/// The provider API alone, for measuring what accepting a notification costs: TLS, HTTP/2, provider token, device token,
/// payload, hand-over and answer, without a store and without devices.
///
/// It writes what h2load needs into a folder and prints the command:
///
///     HERALD_BENCHMARKS=1 swift build -c release --product GatewayBench
///     taskset -c 0 .build/release/GatewayBench /tmp/gateway-bench
@main
struct GatewayBench: AsyncParsableCommand {
    @Argument(help: "A folder for the authority, the device tokens and the provider token.")
    var folder: String

    @Option(help: "The port.")
    var port = 2297

    func run() async throws {
        let clock = ServiceClock()
        let trust = try TrustFolder.create(at: folder, hostnames: ["localhost"], now: clock.now())
        let team = "TEAM000001"
        let key = try trust.makeProviderKey(team: team, topics: [], environments: [.production], now: clock.now())
        let office = try TrustOffice(folder: trust)
        let tokens = (1...1000).map { number in
            office.seal.seal(TokenContents(slot: Slot(device: DeviceNumber(number), app: AppNumber(1)), generation: 1))
                .hex
        }
        let bearer = try ProviderToken.sign(
            key: P256.Signing.PrivateKey(pemRepresentation: key.pem),
            keyID: key.credential.id,
            team: team,
            issued: clock.now()
        )
        let uris = tokens.map { "https://127.0.0.1:\(port)/3/device/\($0)\n" }.joined()
        let body = #"{"aps":{"alert":{"title":"Bench","body":""# + String(repeating: "x", count: 240) + #""}}}"#
        try Data(uris.utf8).write(to: URL(fileURLWithPath: folder + "/uris"))
        try Data(body.utf8).write(to: URL(fileURLWithPath: folder + "/body"))
        let server = try trust.serverCertificate()
        let tls = DoorTLS(
            certificateChain: server.chain,
            privateKeyPEM: server.keyPEM,
            clientAuthority: PEMBundle.der(trust.providerAuthority.certificate),
            clientCertificate: .optional,
            applicationProtocols: ["h2"]
        )
        let gateway = Gateway(
            configuration: GatewayConfiguration(host: "127.0.0.1", port: port, environment: .production),
            group: MultiThreadedEventLoopGroup.singleton,
            context: try tls.makeContext(),
            admission: Admission(trust: office, apps: OneApp()),
            letterBox: Acceptor(),
            clock: clock,
            logger: Logger(label: "bench")
        )
        _ = try await gateway.open()
        print(
            """
            taskset -c 1 h2load -n 100000 -c 10 -m 100 -t 1 -i \(folder)/uris -d \(folder)/body \
            -H 'authorization: bearer \(bearer)' -H 'apns-topic: com.example.bench' -H 'apns-push-type: alert' \
            -H 'apns-priority: 10' -H 'apns-expiration: 0' -H ':method: POST'
            """
        )
        fflush(nil)
        await gateway.run()
    }
}

private struct OneApp: AppDirectory {
    private let bench = Topic("com.example.bench").map { App(topic: $0, environment: .production) }

    func app(_ number: AppNumber) -> App? { number == AppNumber(1) ? bench : nil }

    func number(of app: App) -> AppNumber? { app == bench ? AppNumber(1) : nil }
}

/// Settles every receipt, by the way that a store's would take.
private final class Acceptor: LetterBox {
    let longestStorage = Duration.seconds(30 * 86_400)

    func post(_ letter: Letter, generation: UInt32) -> PostDecision {
        letter.receipt?.settle(.accepted)
        return .pending
    }

    func discard(_ letter: Letter, generation: UInt32, as state: JournalState) -> PostDecision {
        post(letter, generation: generation)
    }

    func note(_ state: JournalState, about notification: Notification) {}
}
