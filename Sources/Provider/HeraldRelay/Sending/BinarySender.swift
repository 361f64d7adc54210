import HeraldModel
import HeraldProvider

/// A sender that uses the library's client of the binary interface.
struct BinarySender: RelaySender {
    private let client: BinaryClient
    private let app: RelayApp

    /// - Throws: `ProviderError` if the certificate or the authority is unusable.
    init(_ app: RelayApp, timeout: Duration) throws {
        // The client reports a missing certificate.
        let certificate: [UInt8] = if case .certificate(let pem) = app.credential.kind { pem } else { [] }
        var configuration = BinaryClientConfiguration(
            host: app.service.host,
            port: app.service.port,
            certificate: certificate,
            authorities: app.authorities
        )
        configuration.proxy = app.proxy
        configuration.timeout = timeout
        // Rows wait in the queue, so the client need not wait for an unreachable service.
        configuration.waitsForService = false
        client = try BinaryClient(configuration)
        self.app = app
    }

    func send(_ requests: [PushRequest], report: @escaping @Sendable (Int, SendResult) -> Void) async {
        await withDiscardingTaskGroup { group in
            for (index, request) in requests.enumerated() {
                group.addTask { report(index, await send(request)) }
            }
        }
    }

    private func send(_ request: PushRequest) async -> SendResult {
        do {
            let binary = try BinaryEncoding.request(request)
            switch try await client.send(binary) {
            case .accepted: return .answered(.accepted(PushReceipt(binary: request.id)))
            case .refused(let refusal): return .answered(.refused(PushRefusal(refusal)))
            case .uncertain(let error): return .uncertain(error.rowError(app))
            }
        } catch let error as RowError {
            return .refused(error)
        } catch let error as ProviderError {
            return error.permanentResult ?? .notSent(error.rowError(app))
        } catch {
            return .uncertain(RowError(.stopped))
        }
    }

    func shutdown() async {
        await client.shutdown()
    }
}

/// Encodes notifications for the binary interface.
///
/// It refuses a notification that the interface cannot carry, instead of dropping a part of it.
enum BinaryEncoding {
    /// Maximum length of a payload, in bytes.
    static let payloadBytes = 2048

    /// - Throws: ``RowError``, for a notification that the interface cannot carry.
    static func request(_ request: PushRequest) throws(RowError) -> BinaryRequest {
        guard request.collapseID == nil else { throw RowError(.collapseIDNotCarried) }
        guard request.priority != .low else { throw RowError(.priorityNotCarried) }
        guard request.pushType == impliedType(request) else { throw RowError(.pushTypeNotCarried) }
        guard request.payload.count <= payloadBytes else { throw RowError(.payloadTooLarge) }
        var binary = BinaryRequest(token: request.token, payload: request.payload)
        binary.expiration = request.expiration
        binary.priority = request.priority
        binary.identifier = request.id.map(identifier)
        return binary
    }

    /// The binary identifier of a notification: the last eight digits of its `apns-id`, which end Herald's own too.
    static func identifier(_ id: NotificationID) -> UInt32 {
        UInt32(truncatingIfNeeded: id.low)
    }

    /// The push type that the service derives from the topic's suffix and the payload.
    ///
    /// Certificates do not send Live Activities and location queries.
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
