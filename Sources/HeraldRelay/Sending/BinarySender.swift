import HeraldModel
import HeraldProvider

/// A sender on the library's client of the binary interface.
struct BinarySender: RelaySender {
    private let client: BinaryClient

    /// - Throws: `ProviderError` if the certificate or the authority cannot be used.
    init(_ app: RelayApp, timeout: Duration) throws {
        // Without a certificate, as an app of a key is, the client says what is missing.
        let certificate: [UInt8] = if case .certificate(let pem) = app.credential { pem } else { [] }
        var configuration = BinaryClientConfiguration(
            host: app.service.host,
            port: app.service.port,
            certificate: certificate,
            authorities: app.authorities
        )
        configuration.timeout = timeout
        // Rows can wait where they are: what is in hand is for services that are there.
        configuration.waitsForService = false
        client = try BinaryClient(configuration)
    }

    func send(_ request: PushRequest) async -> SendResult {
        do {
            let binary = try BinaryForm.request(request)
            switch try await client.send(binary) {
            case .accepted: return .answered(.accepted(PushReceipt(binary: request.id)))
            case .refused(let refusal): return .answered(.refused(PushRefusal(refusal)))
            case .uncertain(let error): return .uncertain(error.relayReason)
            }
        } catch let fault as BinaryForm.Fault {
            return .refused(fault.rawValue)
        } catch let error as ProviderError {
            return error.relayImpossibility ?? .notSent(error.relayReason)
        } catch {
            return .uncertain("Stopped")
        }
    }

    func shutdown() async {
        await client.shutdown()
    }
}

/// A notification as the binary interface can carry it.
///
/// What it cannot say is refused and never left out: a notification without its collapse identifier, say, is another.
enum BinaryForm {
    /// Why it cannot carry one, in the word for the row.
    enum Fault: String, Error {
        case collapseID = "CollapseIdNotCarried"
        case priority = "PriorityNotCarried"
        case pushType = "PushTypeNotCarried"
        case payload = "PayloadTooLarge"
    }

    /// The longest payload, in bytes.
    static let payloadBytes = 2048

    /// - Throws: ``Fault``.
    static func request(_ request: PushRequest) throws(Fault) -> BinaryRequest {
        guard request.collapseID == nil else { throw .collapseID }
        guard request.priority != .low else { throw .priority }
        guard request.pushType == impliedType(request) else { throw .pushType }
        guard request.payload.count <= payloadBytes else { throw .payload }
        var binary = BinaryRequest(token: request.token, payload: request.payload)
        binary.expiration = request.expiration
        binary.priority = request.priority
        binary.identifier = request.id.map(identifier)
        return binary
    }

    /// The number of a notification: the last eight digits of its `apns-id`, with which Herald's journal ends its own.
    static func identifier(_ id: NotificationID) -> UInt32 {
        UInt32(truncatingIfNeeded: id.low)
    }

    /// What the service takes it for: by the topic's ending, else by the payload.
    ///
    /// Live Activities and location queries are not for certificates.
    private static func impliedType(_ request: PushRequest) -> PushType? {
        let name = request.topic?.name ?? ""
        let named = PushType.allCases.filter { !$0.topicSuffix.isEmpty && name.hasSuffix($0.topicSuffix) }
            .max { $0.topicSuffix.utf8.count < $1.topicSuffix.utf8.count }
        switch named {
        case .liveactivity, .location: return nil
        case let type?: return type
        case nil: return PayloadScanner.isSilent(request.payload) ? .background : .alert
        }
    }
}
