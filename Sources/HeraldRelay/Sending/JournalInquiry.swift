import AsyncHTTPClient
import Foundation
package import HeraldModel
import NIOCore
import NIOHTTP1

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
    /// It never came.
    case unknown
    /// The journal cannot be asked.
    case unavailable
}

/// The journal by the admin API of a Herald's console (`GET /v1/journal?notification=…`).
struct JournalInquiry: Inquiry {
    /// The longest answer that is read, in bytes: a notification has some ten lines.
    private static let maximumBytes = 1 << 18

    let journal: RelayApp.Journal
    var timeout: Duration = .seconds(5)

    func standing(of id: NotificationID) async -> JournalStanding {
        var base = journal.console
        while base.hasSuffix("/") { base.removeLast() }
        var request = HTTPClientRequest(url: "\(base)/v1/journal?notification=\(id)&limit=100")
        request.headers.add(name: "authorization", value: "Bearer \(journal.token)")
        do {
            let response = try await HTTPClient.shared.execute(request, timeout: TimeAmount(timeout))
            guard response.status == .ok else { return .unavailable }
            let body = try await response.body.collect(upTo: JournalInquiry.maximumBytes)
            return try JournalInquiry.standing(Array(body.readableBytesView))
        } catch {
            return .unavailable
        }
    }

    /// Reads the journal's lines.
    static func standing(_ json: [UInt8]) throws -> JournalStanding {
        let lines = try JSONDecoder().decode([Line].self, from: Data(json))
        if lines.isEmpty { return .unknown }
        return lines.allSatisfy { $0.state == "received" } ? .underWay : .accepted
    }

    private struct Line: Decodable {
        let state: String
    }
}
