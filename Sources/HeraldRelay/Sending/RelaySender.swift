import HeraldModel
package import HeraldProvider

/// Sends notifications; any number may be in flight.
package protocol RelaySender: Sendable {
    /// Sends notifications, and returns after the last result.
    /// - Parameters:
    ///   - requests: The notifications.
    ///   - report: Receives the result of each one once, with its index in `requests`. Several
    ///     threads may call it at once, and it must not block.
    func send(_ requests: [PushRequest], report: @escaping @Sendable (Int, SendResult) -> Void) async
    func shutdown() async
}

/// A sender that uses the library's client.
struct ProviderSender: RelaySender {
    private let client: ProviderClient

    /// - Throws: `ProviderError` if the credential or the authority is unusable.
    init(_ app: RelayApp, timeout: Duration) throws {
        var configuration = ProviderConfiguration(
            host: app.service.host,
            port: app.service.port,
            credential: app.providerCredential,
            authorities: app.authorities
        )
        configuration.proxy = app.proxy
        configuration.timeout = timeout
        // Rows wait in the queue, so the client need not wait for an unreachable service.
        configuration.retry.waitsForService = false
        client = try ProviderClient(configuration)
    }

    func send(_ requests: [PushRequest], report: @escaping @Sendable (Int, SendResult) -> Void) async {
        await client.send(requests) { report($0, Self.result(of: $1)) }
    }

    private static func result(of outcome: Result<PushAnswer, any Error>) -> SendResult {
        switch outcome {
        case .success(let answer): return .answered(answer)
        case .failure(let error as ProviderError):
            if let result = error.permanentResult { return result }
            return error.mayHaveArrived ? .uncertain(error.relayReason) : .notSent(error.relayReason)
        case .failure: return .uncertain("Stopped")
        }
    }

    func shutdown() async {
        await client.shutdown()
    }
}

extension ProviderError {
    /// The result for an error that a retry does not mend; nil for others.
    var permanentResult: SendResult? {
        switch code {
        case .badCredential, .badAuthority: .credentialRefused("BadCredential")
        case .badRequest: .invalid("BadRequest")
        default: nil
        }
    }

    /// The row's reason for a notification that was not sent.
    var relayReason: String {
        switch code {
        case .untrusted: "Untrusted"
        case .badProxy: "ProxyRefused"
        case .timedOut: "TimedOut"
        case .badAnswer: "BadAnswer"
        case .overloaded: "Overloaded"
        case .shutDown: "Stopped"
        default: "Unreachable"
        }
    }
}

extension RelayApp {
    /// Makes the sender of this app; it connects with the first notification.
    /// - Parameter timeout: Time limit for an answer.
    /// - Returns: The sender.
    /// - Throws: `ProviderError` if the credential or the authority is unusable.
    func sender(timeout: Duration) throws -> any RelaySender {
        switch interface {
        case .http2: try ProviderSender(self, timeout: timeout)
        case .binary: try BinarySender(self, timeout: timeout)
        }
    }

    var providerCredential: ProviderCredential {
        switch credential {
        case .certificate(let pem): .certificate(pem: pem)
        case .key(let pem, let id, let team): .key(pem: pem, id: id, team: team)
        }
    }
}
