import HeraldModel
package import HeraldProvider

/// Sends notifications; any number may be in flight.
///
/// A sender that nobody keeps any more closes its connections.
package protocol RelaySender: Sendable {
    /// Sends notifications, and returns after the last result.
    ///
    /// `report` receives the result of each one once, with its index in `requests`. Several threads may call it at
    /// once, and it must not block.
    func send(_ requests: [PushRequest], report: @escaping @Sendable (Int, SendResult) -> Void) async
    func shutdown() async
}

/// A sender that uses the library's client.
struct ProviderSender: RelaySender {
    private let client: ProviderClient
    private let app: RelayApp

    /// - Throws: `ProviderError` if the credential or the authority is unusable.
    init(_ app: RelayApp, timeout: Duration) throws {
        var configuration = ProviderConfiguration(
            host: app.service.host,
            port: app.service.port,
            credential: app.credential,
            authorities: app.authorities
        )
        configuration.proxy = app.proxy
        configuration.timeout = timeout
        // Rows wait in the queue and are tried again from there.
        configuration.retry = .never
        client = try ProviderClient(configuration)
        self.app = app
    }

    func send(_ requests: [PushRequest], report: @escaping @Sendable (Int, SendResult) -> Void) async {
        await client.send(requests) { report($0, result(of: $1)) }
    }

    private func result(of outcome: Result<PushAnswer, any Error>) -> SendResult {
        switch outcome {
        case .success(let answer): return .answered(answer)
        case .failure(let error as ProviderError):
            if let result = error.permanentResult { return result }
            return error.mayHaveArrived ? .uncertain(error.rowError(app)) : .notSent(error.rowError(app))
        case .failure: return .uncertain(RowError(.stopped))
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
        case .badCredential, .badAuthority: .credentialRefused(RowError(.badCredential, message))
        case .badRequest: .invalid(RowError(.badRequest, message))
        default: nil
        }
    }

    /// The error of a row that was not sent.
    func rowError(_ app: RelayApp) -> RowError {
        let reason: RowReason =
            switch code {
            case .untrusted: .untrusted
            case .badProxy: .proxyRefused
            case .timedOut: .timedOut
            case .badAnswer: .badAnswer
            case .overloaded: .overloaded
            case .shutDown: .stopped
            default: .unreachable
            }
        guard reason == .untrusted else { return RowError(reason, message) }
        let advice =
            app.authorities == nil
            ? "give the service's ca.pem with `ca`; without it the relay trusts the system's authorities"
            : "`ca` has another authority than the service, or its certificate does not name the host"
        return RowError(reason, "\(message): \(advice)")
    }
}

extension RelayApp {
    /// Makes the sender of this app, which connects with the first notification; `timeout` is that of an answer.
    /// - Throws: `ProviderError` if the credential or the authority is unusable.
    func sender(timeout: Duration) throws -> any RelaySender {
        switch interface {
        case .http2: try ProviderSender(self, timeout: timeout)
        case .binary: try BinarySender(self, timeout: timeout)
        }
    }
}
