import AsyncHTTPClient
import Foundation
package import HeraldModel
import NIOCore
import NIOHTTP1
import Synchronization

/// Asks a Herald's journal what became of a notification.
package protocol Inquiry: Sendable {
    func standing(of id: NotificationID) async -> JournalStanding
}

/// What a journal knows of a notification.
package enum JournalStanding: Hashable, Sendable {
    /// The service took it: it is stored, delivered, or done with.
    case accepted
    /// It came, and what became of it is not on record yet.
    case underWay
    /// The service did not take it: it never came, or each time it came it was turned away.
    case notTaken
    /// The journal cannot be asked.
    case unavailable
}

/// The journal by the admin API of a Herald's console (`GET /v1/journal?notification=…`).
///
/// A Herald makes a new token at each start: where the one at hand is not taken, the file is read again.
final class JournalInquiry: Inquiry {
    /// The longest answer that is read, in bytes: a notification has some ten lines.
    private static let maximumBytes = 1 << 18

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

    func standing(of id: NotificationID) async -> JournalStanding {
        do {
            let token = try self.token.withLock { token in
                let known = try token ?? readToken()
                token = known
                return known
            }
            if let standing = try await ask(id, token) { return standing }
            let newer = try self.token.withLock { known -> String? in
                // Many may have been turned away at a time: one of them reads the file.
                if known == token { known = try readToken() }
                return known == token ? nil : known
            }
            guard let newer else { return .unavailable }
            return try await ask(id, newer) ?? .unavailable
        } catch {
            return .unavailable
        }
    }

    /// - Returns: What the journal says; nil if the token is not taken.
    private func ask(_ id: NotificationID, _ token: String) async throws -> JournalStanding? {
        var request = HTTPClientRequest(url: "\(address)?notification=\(id)&limit=1000")
        request.headers.add(name: "authorization", value: "Bearer \(token)")
        let response = try await HTTPClient.shared.execute(request, timeout: TimeAmount(timeout))
        guard response.status != .unauthorized else { return nil }
        guard response.status == .ok else { return .unavailable }
        let body = try await response.body.collect(upTo: JournalInquiry.maximumBytes)
        return try JournalInquiry.standing(Array(body.readableBytesView))
    }

    /// Reads the journal's lines: a notification that was sent several times has `received` for each, and those that a
    /// drill refused or lost say so.
    static func standing(_ json: [UInt8]) throws -> JournalStanding {
        var (received, turnedAway) = (0, 0)
        for line in try JSONDecoder().decode([Line].self, from: Data(json)) {
            switch (line.state, line.reason) {
            case ("received", _): received += 1
            case ("refused", "drill"), ("lost", "drill"): turnedAway += 1
            default: return .accepted
            }
        }
        return received > turnedAway ? .underWay : .notTaken
    }

    private struct Line: Decodable {
        let state: String
        let reason: String?
    }
}
