import Foundation
import HeraldJSON
import HeraldMailbox
import HeraldModel
import HeraldService
import Synchronization

/// A program that lives through a scenario: it reads orders as lines of JSON, and writes what became of each push.
final class AdapterSender: Sender {
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

    func send(_ pushes: [ExamPush], to place: ExamPlace) async throws {
        let running = if let known = process.withLock({ $0 }) { known } else { try await open(place) }
        for push in pushes { try await write(Self.order(push), to: running) }
    }

    /// Starts the program, and tells it where the service is.
    private func open(_ place: ExamPlace) async throws -> SenderProcess {
        let ledger = ledger
        let started = try SenderProcess(
            line,
            folder: folder,
            environment: place.environment,
            take: { Self.take($0, ledger) },
            flood: { ledger.fail(Undriven("it floods its standard output")) }
        )
        process.withLock { $0 = started }
        Task { ledger.end(status: await started.end(within: .seconds(3600)) ?? SIGKILL) }
        var order: JSON.Object = ["do": "open", "port": .number(JSON.Number(place.port))]
        for (name, text) in place.texts { order[name] = .string(text) }
        try await write(JSON.object(order).description, to: started)
        return started
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

extension ExamPlace {
    /// The environment of a sender's programs: the exam's own, without Herald's settings, and the authority where OpenSSL
    /// and others look for it.
    var environment: [String: String] {
        ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("HERALD_") }
            .merging(["SSL_CERT_FILE": authorities]) { $1 }
    }
}
