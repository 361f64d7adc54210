import Foundation
import HeraldMailbox
import HeraldModel
import HeraldService
import Synchronization

/// A program that lives through a scenario: it reads orders as lines of JSON, and writes what became of each push.
final class AdapterSender: Sender {
    private struct Open: Encodable {
        var `do` = "open"
        let host: String
        let port: Int
        let ca: String
        let key: String
        let keyID: String
        let team: String
        let topic: String

        enum CodingKeys: String, CodingKey {
            case `do`, host, port, ca, key, team, topic
            case keyID = "key_id"
        }
    }

    private struct Answer: Decodable {
        let id: Int?
        let outcome: ExamWord.Outcome?
        let status: Int?
        let reason: String?
        let unsupported: String?
    }

    private let line: String
    private let ledger: Ledger
    private let folder: String
    private let process = Mutex<SenderProcess?>(nil)

    init(_ line: String, _ ledger: Ledger, folder: String) {
        self.line = line
        self.ledger = ledger
        self.folder = folder
    }

    func open(_ place: ExamPlace) async throws {
        let ledger = ledger
        let started = try SenderProcess(
            line,
            folder: folder,
            environment: SenderEnvironment.make(place),
            take: { Self.take($0, ledger) },
            flood: { ledger.fail(Undriven("it floods its standard output")) }
        )
        process.withLock { $0 = started }
        Task { ledger.end(status: await started.end(within: .seconds(3600)) ?? SIGKILL) }
        let order = Open(
            host: place.host,
            port: place.port,
            ca: place.authorities,
            key: place.key,
            keyID: place.keyID,
            team: place.team,
            topic: place.topic
        )
        try await write(String(decoding: try JSONEncoder().encode(order), as: UTF8.self), to: started)
    }

    func send(_ pushes: [ExamPush]) async throws {
        guard let process = process.withLock({ $0 }) else { return }
        for push in pushes { try await write(Self.order(push), to: process) }
    }

    /// Writes an order; that the program has ended says more than that it does not read.
    private func write(_ line: String, to process: SenderProcess) async throws {
        do {
            try await process.write(line)
        } catch {
            await ledger.ended(within: .seconds(1))
            throw error
        }
    }

    func close() async -> [String] {
        guard let process = process.withLock({ $0 }) else { return [] }
        ledger.close()
        if ledger.fault == nil {
            try? await process.write(#"{"do":"close"}"#)
            process.closeInput()
            await ledger.ended(within: .seconds(5))
        }
        process.kill()
        await ledger.ended(within: .seconds(5))
        return process.complaints
    }

    /// The order for a push; its parts have no characters that JSON escapes.
    private static func order(_ push: ExamPush) -> String {
        var members = [
            #""do":"send""#, #""id":\#(push.number)"#, #""token":"\#(push.token)""#, #""payload":\#(push.payload)"#,
            #""push_type":"\#(push.shape.pushType)""#, #""priority":\#(push.shape.priority)"#,
        ]
        if let expiration = push.expiration { members.append(#""expiration":\#(expiration)"#) }
        if let collapseID = push.shape.collapseID { members.append(#""collapse_id":"\#(collapseID)""#) }
        return "{" + members.joined(separator: ",") + "}"
    }

    private static func take(_ line: String, _ ledger: Ledger) {
        guard !line.allSatisfy(\.isWhitespace) else { return }
        guard let answer = try? JSONDecoder().decode(Answer.self, from: Data(line.utf8)) else {
            let shown = LogText.escaped(line, limit: 80)
            return ledger.fail(Undriven("it writes what is not a line of JSON with a known outcome: \(shown)"))
        }
        if let unsupported = answer.unsupported {
            let what = LogText.escaped(unsupported, limit: 80)
            return ledger.fail(
                what.isEmpty ? Undriven("it does not say what is unsupported") : Undriven(unsupported: what)
            )
        }
        guard let id = answer.id, let outcome = answer.outcome else {
            return ledger.fail(Undriven("it writes a line without id and outcome"))
        }
        let word = ExamWord(outcome: outcome, status: answer.status, reason: answer.reason, time: ServiceClock().now())
        ledger.note(word, of: id)
    }
}

/// The environment of a sender's programs.
enum SenderEnvironment {
    /// The exam's own, without Herald's settings, and the authority where OpenSSL and others look for it.
    static func make(_ place: ExamPlace) -> [String: String] {
        ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("HERALD_") }
            .merging(["SSL_CERT_FILE": place.authorities]) { $1 }
    }
}
