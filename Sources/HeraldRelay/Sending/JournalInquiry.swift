import AsyncHTTPClient
import Foundation
package import HeraldModel
import NIOCore
import NIOHTTP1
import Synchronization

/// Asks a Herald's journal what became of a notification.
package protocol Inquiry: Sendable {
    /// - Parameters:
    ///   - id: Its `apns-id`.
    ///   - start: Before then it was certainly not sent.
    /// - Returns: What the journal knows.
    func standing(of id: NotificationID, since start: WallTime) async -> JournalStanding
}

/// What a journal knows of a notification.
package enum JournalStanding: Hashable, Sendable {
    /// The service took it: it is stored, delivered, or done with.
    case accepted
    /// It came, and what became of it is not on record yet.
    case underWay
    /// The service did not take it: it never came, or each time it came it was turned away.
    case notTaken
    /// The journal cannot be asked, and why.
    case unavailable(String)

    /// Reads what the journal has about one notification: one that was sent several times has `received` for each, and
    /// those that a drill refused or lost say so.
    init(_ lines: some Sequence<JournalLine>) {
        var (received, turnedAway) = (0, 0)
        for line in lines {
            switch (line.state, line.reason) {
            case ("received", _): received += 1
            case ("refused", "drill"), ("lost", "drill"): turnedAway += 1
            default:
                self = .accepted
                return
            }
        }
        self = received > turnedAway ? .underWay : .notTaken
    }
}

/// A line of the journal, as far as it matters here.
struct JournalLine: Decodable {
    let id: String
    let time: String
    let state: String
    let reason: String?
}

extension RelayApp {
    /// Who is asked about what may have been sent for it.
    /// - Parameter readToken: Reads the token in a file, each time that it is asked.
    /// - Returns: nil if nobody can be asked.
    func inquiry(_ readToken: @escaping @Sendable (String) throws -> String) -> (any Inquiry)? {
        guard let journal else { return nil }
        let door = JournalDoor(console: journal.console) { try readToken(journal.tokenFile) }
        return switch interface {
        case .http2: JournalInquiry(door)
        case .binary: topics.first.map { BinaryJournalInquiry(door, topic: $0) }
        }
    }
}

/// Asks by the `apns-id` (`GET /v1/journal?notification=…`).
struct JournalInquiry: Inquiry {
    /// The longest answer that is read, in bytes: a notification has some ten lines.
    private static let maximumBytes = 1 << 18

    private let door: JournalDoor

    init(_ door: JournalDoor) {
        self.door = door
    }

    func standing(of id: NotificationID, since start: WallTime) async -> JournalStanding {
        switch await door.lines("notification=\(id)&limit=1000", upTo: Self.maximumBytes) {
        case .success(let lines): JournalStanding(lines)
        case .failure(let fault): .unavailable(fault.words)
        }
    }
}

/// Why a journal cannot be asked.
struct JournalFault: Error, Hashable {
    let words: String
}

/// The journal by the admin API of a Herald's console.
///
/// A Herald makes a new token at each start: where the one at hand is not taken, the file is read again.
final class JournalDoor: Sendable {
    private let address: String
    private let timeout: Duration
    private let readToken: @Sendable () throws -> String
    private let token = Mutex<String?>(nil)

    /// - Parameters:
    ///   - console: The console, like `http://127.0.0.1:2190`.
    ///   - timeout: How long an answer may take.
    ///   - readToken: Gives the token that is in its file now.
    init(console: String, timeout: Duration = .seconds(5), readToken: @escaping @Sendable () throws -> String) {
        var base = console
        while base.hasSuffix("/") { base.removeLast() }
        address = base + "/v1/journal"
        self.timeout = timeout
        self.readToken = readToken
    }

    /// The lines that match a query, oldest first.
    /// - Returns: The lines; or why the journal cannot be asked, an answer of more bytes than that included.
    func lines(_ query: String, upTo limit: Int) async -> Result<[JournalLine], JournalFault> {
        do {
            let token = try self.token.withLock { token in
                let known = try token ?? readToken()
                token = known
                return known
            }
            if case .answered(let lines) = try await ask(query, limit, token) { return lines }
            let newer = try self.token.withLock { known -> String? in
                // Many may have been turned away at a time: one of them reads the file.
                if known == token { known = try readToken() }
                return known == token ? nil : known
            }
            guard let newer, case .answered(let lines) = try await ask(query, limit, newer) else {
                return .failure(JournalFault(words: "it does not take the token of `console-token`"))
            }
            return lines
        } catch {
            return .failure(JournalFault(words: "\(error)"))
        }
    }

    private enum Answer {
        case answered(Result<[JournalLine], JournalFault>)
        case tokenRefused
    }

    private func ask(_ query: String, _ limit: Int, _ token: String) async throws -> Answer {
        var request = HTTPClientRequest(url: "\(address)?\(query)")
        request.headers.add(name: "authorization", value: "Bearer \(token)")
        let response = try await HTTPClient.shared.execute(request, timeout: TimeAmount(timeout))
        guard response.status != .unauthorized else { return .tokenRefused }
        guard response.status == .ok else {
            return .answered(.failure(JournalFault(words: "it answers \(response.status.code)")))
        }
        let body = try await response.body.collect(upTo: limit)
        do {
            return .answered(.success(try JSONDecoder().decode([JournalLine].self, from: Data(body.readableBytesView))))
        } catch {
            return .answered(.failure(JournalFault(words: "what answers is no journal")))
        }
    }
}
