import HeraldModel
package import HeraldProvider

/// Sends one notification at a time, many at once.
///
/// What it cannot take now it makes wait.
package protocol RelaySender: Sendable {
    func send(_ request: PushRequest) async -> SendResult
    func shutdown() async
}

/// A sender on the client of the library.
struct ProviderSender: RelaySender {
    private let client: ProviderClient

    /// - Throws: `ProviderError` if the credential or the authority cannot be used.
    init(_ app: RelayApp, timeout: Duration) throws {
        var configuration = ProviderConfiguration(
            host: app.service.host,
            port: app.service.port,
            credential: app.providerCredential,
            authorities: app.authorities
        )
        configuration.timeout = timeout
        // Rows can wait where they are: what is in hand is for services that are there.
        configuration.retry.waitsForService = false
        client = try ProviderClient(configuration)
    }

    func send(_ request: PushRequest) async -> SendResult {
        do {
            return .answered(try await client.send(request))
        } catch let error as ProviderError {
            if let impossibility = error.relayImpossibility { return impossibility }
            return error.mayHaveArrived ? .uncertain(error.relayReason) : .notSent(error.relayReason)
        } catch {
            return .uncertain("Stopped")
        }
    }

    func shutdown() async {
        await client.shutdown()
    }
}

extension ProviderError {
    /// What trying again does not mend by itself; nil for all else.
    var relayImpossibility: SendResult? {
        switch code {
        case .badCredential, .badAuthority: .notAccepted("BadCredential")
        case .badRequest: .impossible("BadRequest")
        default: nil
        }
    }

    /// Why a row was not sent, in the word for the row.
    var relayReason: String {
        switch code {
        case .untrusted: "Untrusted"
        case .timedOut: "TimedOut"
        case .badAnswer: "BadAnswer"
        case .overloaded: "Overloaded"
        case .shutDown: "Stopped"
        default: "Unreachable"
        }
    }
}

extension RelayApp {
    /// What sends for it.
    /// - Parameter timeout: How long an answer may take.
    /// - Returns: A sender that connects with the first notification.
    /// - Throws: `ProviderError` if its credential or its authority cannot be used.
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
