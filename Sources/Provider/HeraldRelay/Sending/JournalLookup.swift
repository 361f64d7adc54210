import AsyncHTTPClient
import HeraldJSON
package import HeraldModel
import NIOCore
import NIOHTTP1
import NIOSSL
import Synchronization

/// Looks up notifications in the journal of a Herald.
package protocol JournalLookup: Sendable {
    /// The result for an `apns-id`, which was certainly not sent before `start`.
    func result(of id: NotificationID, since start: WallTime) async -> JournalResult
}

/// A journal's result for a notification.
package enum JournalResult: Hashable, Sendable {
    /// The service accepted it: stored, delivered, or finished otherwise.
    case accepted
    /// The service received it, and has not recorded an outcome yet.
    case pending
    /// The service did not accept it: it never arrived, or was refused each time.
    case notAccepted
    /// The journal has nothing about it, and has deleted lines of that time.
    case forgotten
    /// The journal is unavailable, with the reason.
    case unavailable(String)

    /// Evaluates the journal's lines about one notification.
    ///
    /// There is a line `received` for each attempt that arrived, and a line for each one that a drill refused or lost.
    init(_ lines: some Sequence<JournalLine>) {
        var (received, refused) = (0, 0)
        for line in lines {
            switch (line.state, line.reason) {
            case ("received", _): received += 1
            case ("refused", "drill"), ("lost", "drill"): refused += 1
            // An attempt that the service refused was not received.
            case ("refused", _): break
            default:
                self = .accepted
                return
            }
        }
        self = received > refused ? .pending : .notAccepted
    }
}

/// The lines of an answer.
struct JournalLines: Sendable {
    /// The field of an HTTP answer that names nodes of a cluster whose lines are missing.
    static let missingNodesField = "herald-missing-nodes"

    /// The field of an HTTP answer with ``completeSince``.
    static let completeSinceField = "herald-complete-since"
    /// Maximum difference between the clocks of the service and of the queue.
    private static let skew = Duration.seconds(60)

    let lines: [JournalLine]
    /// The time since which no line is missing; nil if the journal has never deleted one.
    var completeSince: WallTime?
    /// The names of the nodes whose lines are missing; nil if there are none.
    var missingNodes: String?

    /// The result for a notification with these lines, which was certainly not sent before `start`.
    /// - Returns: ``JournalResult/notAccepted`` only if no line of it can be missing.
    func result(_ lines: some Sequence<JournalLine>, since start: WallTime) -> JournalResult {
        let result = JournalResult(lines)
        guard result == .notAccepted else { return result }
        if let missingNodes { return .unavailable("nodes of its cluster did not answer: \(missingNodes)") }
        if let completeSince, completeSince > start - Self.skew { return .forgotten }
        return result
    }
}

/// The members of a journal line that the relay uses.
struct JournalLine: Decodable, Sendable {
    let id: String
    let time: String
    let state: String
    let reason: String?
}

extension RelayApp {
    /// The journal for notifications that may have been sent for this app.
    /// - Parameter readToken: Reads the token in a file, at each call.
    /// - Returns: nil if no journal is configured.
    func journalLookup(_ readToken: @escaping @Sendable (String) throws -> String) -> (any JournalLookup)? {
        guard let journal else { return nil }
        let client = JournalClient(console: journal.console, authorities: authorities) {
            try readToken(journal.tokenFile)
        }
        return switch interface {
        case .http2: HTTP2JournalLookup(client: client)
        case .binary: topics.first.map { BinaryJournalLookup(client, topic: $0) }
        }
    }
}

/// Looks up notifications by `apns-id` (`GET /v1/journal?id=…`).
struct HTTP2JournalLookup: JournalLookup {
    /// Maximum length of an answer, in bytes; a notification has about ten lines.
    private static let maximumBytes = 1 << 18

    let client: JournalClient
    func result(of id: NotificationID, since start: WallTime) async -> JournalResult {
        switch await client.lines("id=\(id)&limit=1000", upTo: Self.maximumBytes) {
        case .success(let answer): answer.result(answer.lines, since: start)
        case .failure(let error): .unavailable(error.message)
        }
    }
}

/// Reason for which a journal is unavailable.
struct JournalError: Error, Hashable {
    let message: String
}

extension JournalError {
    /// The words for an error of the HTTP client, whose own text may quote a field of the request, so its token.
    fileprivate init(client error: any Error) {
        switch error {
        case let error as HTTPClientError
        where [.connectTimeout, .deadlineExceeded, .readTimeout].contains(error):
            self.init(message: "it does not answer in time")
        case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError:
            self.init(message: "its certificate is not trusted, or it does not speak TLS: check `console` and `ca`")
        case let error as HTTPClientError: self.init(message: error.shortDescription)
        default: self.init(message: "it cannot be reached: is it running, and is `console` its address?")
        }
    }
}

/// Client of the journal in the admin API of a Herald's console.
///
/// Herald makes a new token at each start. If it refuses the token, the client reads the file again.
final class JournalClient: Sendable {
    private let address: String
    /// TLS that trusts the authorities; nil for the system's.
    private let tls: Result<TLSConfiguration, any Error>?
    private let timeout: Duration
    private let readToken: @Sendable () throws -> String
    private let token = Mutex<String?>(nil)

    /// `console` is an address like `http://127.0.0.1:2190`; `authorities` sign its certificate (PEM; nil: the system).
    ///
    /// `readToken` reads the token from its file.
    init(
        console: String,
        authorities: [UInt8]? = nil,
        timeout: Duration = .seconds(5),
        readToken: @escaping @Sendable () throws -> String
    ) {
        var base = console
        while base.hasSuffix("/") { base.removeLast() }
        address = base + "/v1/journal"
        tls = authorities.map { pem in
            Result {
                var tls = TLSConfiguration.makeClientConfiguration()
                tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(pem))
                return tls
            }
        }
        self.timeout = timeout
        self.readToken = readToken
    }

    /// The lines that match a query, oldest first.
    /// - Returns: The lines, or the reason for which the journal is unavailable. An answer of more than `limit` bytes is a failure.
    func lines(_ query: String, upTo limit: Int) async -> Result<JournalLines, JournalError> {
        do {
            let token = try self.token.withLock { token in
                let known = try token ?? readToken()
                token = known
                return known
            }
            if case .answered(let lines) = try await request(query, limit, token) { return lines }
            let newer = try self.token.withLock { known -> String? in
                // Many requests may be refused at once: one of them reads the file.
                if known == token { known = try readToken() }
                return known == token ? nil : known
            }
            guard let newer, case .answered(let lines) = try await request(query, limit, newer) else {
                return .failure(JournalError(message: "it refuses the token of `console-token`"))
            }
            return lines
        } catch {
            // Of reading the token or the authorities: Herald's own words.
            return .failure(JournalError(message: "\(error)"))
        }
    }

    private enum Answer {
        case answered(Result<JournalLines, JournalError>)
        case tokenRefused
    }

    private func request(_ query: String, _ limit: Int, _ token: String) async throws -> Answer {
        var request = HTTPClientRequest(url: "\(address)?\(query)")
        request.headers.add(name: "authorization", value: "Bearer \(token)")
        request.tlsConfiguration = try tls?.get()
        let response: HTTPClientResponse
        let body: ByteBuffer
        do {
            response = try await HTTPClient.shared.execute(request, timeout: TimeAmount(timeout))
            guard response.status != .unauthorized else { return .tokenRefused }
            guard response.status == .ok else {
                return .answered(.failure(JournalError(message: "it answers \(response.status.code)")))
            }
            body = try await response.body.collect(upTo: limit)
        } catch {
            return .answered(.failure(JournalError(client: error)))
        }
        do {
            let lines = try JSON.decode([JournalLine].self, from: Array(body.readableBytesView), rules: .lenient)
            let since = response.headers.first(name: JournalLines.completeSinceField)
            return .answered(
                .success(
                    JournalLines(
                        lines: lines,
                        completeSince: since.map { WallTime(rfc3339: $0) ?? WallTime(milliseconds: .max) },
                        missingNodes: response.headers.first(name: JournalLines.missingNodesField)
                    )
                )
            )
        } catch {
            return .answered(.failure(JournalError(message: "the answer is not from a journal")))
        }
    }
}
