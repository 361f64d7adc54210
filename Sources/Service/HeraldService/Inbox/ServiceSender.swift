import Crypto
import HeraldConsole
import HeraldCourier
import HeraldGateway
import HeraldMailbox
import HeraldModel
import HeraldProvider
import HeraldTrust
import Synchronization

/// Sends through the provider API of this service, with a key that is only in the memory of this process.
///
/// So an answer is the one that every provider gets: drills, limits, metrics and the journal count as always. The key is
/// made when somebody sends for the first time.
final class ServiceSender: Sendable {
    private let assembly: ServiceAssembly
    /// The port of the provider API.
    private let port: Int
    private let clients = Mutex([PushEnvironment: Connected]())
    private let privateKey = Mutex<String?>(nil)

    init(_ assembly: ServiceAssembly, port: Int) {
        self.assembly = assembly
        self.port = port
    }

    private struct Connected {
        let client: ProviderClient
        /// The authorities that it trusts, in PEM.
        let authorities: [UInt8]
    }

    /// A notification or a broadcast, ready to be sent.
    private enum Shipment: Sendable {
        case notification(PushRequest)
        case broadcast(BroadcastRequest)
    }

    /// Sends a notification to each recipient.
    /// - Returns: The answers, in the order of the recipients.
    /// - Throws: `AdminError` if nothing can be sent.
    func send(_ order: SendOrder) async throws -> [SendAnswer] {
        let headers = try SendHeaders(order.headers)
        let shipments = try order.recipients.map { try shipment($0, order, headers) }
        let client = try client(order.environment)
        return await withTaskGroup(of: (Int, SendAnswer).self) { group in
            for (index, shipment) in shipments.enumerated() {
                group.addTask { (index, await Self.send(shipment, client)) }
            }
            var answers: [Int: SendAnswer] = [:]
            for await (index, answer) in group { answers[index] = answer }
            return shipments.indices.compactMap { answers[$0] }
        }
    }

    private func shipment(
        _ recipient: SendOrder.Recipient,
        _ order: SendOrder,
        _ headers: SendHeaders
    ) throws -> Shipment {
        guard let topic = Topic(recipient.topic) else {
            throw AdminError(.badRequest, "topic must be a topic like com.example.app")
        }
        if let channel = recipient.channel {
            if case .malformed = ChannelID.read(channel.utf8) {
                throw AdminError(.badRequest, "channel must be a channel's identifier in base64: see GET /v1/channels")
            }
            return .broadcast(headers.broadcast(channel, topic, order.payload))
        }
        let token: PushToken
        if let text = recipient.token {
            guard let given = PushToken(text) else {
                throw AdminError(.badRequest, "token must be \(PushToken.rule)")
            }
            token = given
        } else {
            token = try self.token(of: recipient.device ?? "", App(topic: topic, environment: order.environment))
        }
        return .notification(headers.request(token, topic, order.payload))
    }

    /// The token of an app on a device.
    private func token(of name: String, _ app: App) throws -> PushToken {
        guard let id = DeviceID(name), let device = assembly.delivery.registry.number(of: id) else {
            throw AdminError(
                .notFound,
                "no device \(name.debugDescription) has ever connected: see `herald device list`"
            )
        }
        let registration = assembly.delivery.registry.number(of: app)
            .flatMap { assembly.delivery.postOffice.registration(Slot(device: device, app: $0)) }
        guard let registration, registration.isLive else {
            throw AdminError(.notFound, "\(app.topic) is not registered on \(id.name) in \(app.environment.rawValue)")
        }
        return PushToken(assembly.trust.seal.token(for: registration))
    }

    private static func send(_ shipment: Shipment, _ client: ProviderClient) async -> SendAnswer {
        let begun = ContinuousClock.now
        let result: Result<PushAnswer, any Error>
        do {
            switch shipment {
            case .notification(let request): result = .success(try await client.send(request))
            case .broadcast(let request): result = .success(try await client.send(request))
            }
        } catch {
            result = .failure(error)
        }
        let took = (ContinuousClock.now - begun) / .microseconds(1) / 1000
        switch result {
        case .success(.accepted(let receipt)):
            return SendAnswer(
                status: 200,
                reason: nil,
                id: receipt.id,
                uniqueID: receipt.uniqueID,
                explanation: receipt.explanation,
                tookMS: took
            )
        case .success(.refused(let refusal)):
            return SendAnswer(
                status: refusal.status,
                reason: refusal.reason.text,
                id: refusal.id,
                explanation: refusal.explanation ?? refusal.reason.known?.explanation,
                tookMS: took
            )
        case .failure(let error):
            return SendAnswer(
                status: nil,
                reason: nil,
                id: nil,
                explanation: "not sent, or without an answer: \(error)",
                tookMS: took
            )
        }
    }

    private func client(_ environment: PushEnvironment) throws -> ProviderClient {
        // Read each time: the operator may have changed to another authority.
        let authorities = try SafeFile.read(assembly.folder.authorityPath)
        return try clients.withLock { clients in
            let former = clients[environment]
            if let former, former.authorities == authorities { return former.client }
            let client = try makeClient(environment, authorities)
            clients[environment] = Connected(client: client, authorities: authorities)
            if let former { Task { await former.client.shutdown() } }
            return client
        }
    }

    private func makeClient(_ environment: PushEnvironment, _ authorities: [UInt8]) throws -> ProviderClient {
        let name = environment == .sandbox ? "sandbox.localhost" : "localhost"
        guard (PushEnvironment.named(by: name) ?? assembly.configuration.environment) == environment else {
            throw AdminError(
                .conflict,
                "this service has the setting environment: sandbox, so nobody can send in production"
            )
        }
        var configuration = ProviderConfiguration(
            host: name,
            port: port,
            credential: .key(pem: Array(key().utf8), id: ProviderKey.consoleID, team: ProviderKey.consoleID),
            authorities: authorities
        )
        configuration.address = NumericAddress.reachable(assembly.configuration.host)
        // A certificate of the operator's own may not name localhost, and this is our own port.
        configuration.verifiesName = false
        configuration.explains = true
        configuration.retry = .never
        configuration.timeout = .seconds(10)
        configuration.totalTimeout = configuration.timeout
        configuration.connections.maximum = 1
        return try ProviderClient(configuration, wall: { [clock = assembly.clock] in clock.now() })
    }

    /// The private key in PEM, which both environments share.
    private func key() -> String {
        privateKey.withLock { held in
            if let held { return held }
            let key = P256.Signing.PrivateKey()
            assembly.trust.admitConsole(ProviderKey(console: key.publicKey, created: assembly.clock.now()))
            held = key.pemRepresentation
            return key.pemRepresentation
        }
    }
}
