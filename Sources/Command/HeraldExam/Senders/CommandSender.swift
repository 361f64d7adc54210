import Foundation
import HeraldMailbox
import HeraldModel
import Synchronization

/// A command that sends and ends; its exit status is all that it says.
final class CommandSender: Sender {
    /// Commands with `{token}` that run at the same time.
    private static let width = 4
    private static let patience = Duration.seconds(60)

    private struct State {
        var work: Task<Void, Never>?
        var complaints: [String] = []
    }

    private let line: String
    private let ledger: Ledger
    private let folder: String
    private let state = Mutex(State())

    init(_ line: String, _ ledger: Ledger, folder: String) {
        self.line = line
        self.ledger = ledger
        self.folder = folder
    }

    /// Begins to send; the ledger hears of the end.
    func send(_ pushes: [ExamPush], to place: ExamPlace) throws {
        let tokens = "\(folder)/tokens"
        let payload = "\(folder)/payload.json"
        do {
            let lines = pushes.map { $0.token + "\n" }.joined()
            try Data(lines.utf8).write(to: URL(fileURLWithPath: tokens))
            try Data((pushes.first?.payload ?? "{}").utf8).write(to: URL(fileURLWithPath: payload))
        } catch {
            throw Undriven("cannot write into \(folder): \(error)")
        }
        let own = ["port": "\(place.port)", "tokens": tokens, "payload": payload]
        let values = place.texts.merging(own) { $1 }
        let common = values.reduce(line) { $0.replacing("{\($1.key)}", with: ShellWord.quoted($1.value)) }
        // A command for one push says with its exit status what became of it.
        let lines: [(line: String, push: Int?)] =
            common.contains("{token}")
            ? pushes.map { (common.replacing("{token}", with: $0.token), $0.number) } : [(common, nil)]
        let work = Task { [self] in
            await withTaskGroup(of: Void.self) { group in
                var rest = lines[...]
                func next() {
                    guard let (line, push) = rest.popFirst() else { return }
                    group.addTask { await self.run(line, push, place) }
                }
                for _ in 0..<Self.width { next() }
                for await _ in group where !Task.isCancelled { next() }
            }
            ledger.end()
        }
        state.withLock { $0.work = work }
    }

    /// Ends the commands that still run.
    func close() async -> [String] {
        await ledger.ended(within: Self.patience)
        let work = state.withLock { $0.work }
        work?.cancel()
        await work?.value
        return state.withLock { $0.complaints }
    }

    private func run(_ line: String, _ push: Int?, _ place: ExamPlace) async {
        do {
            let process = try SenderProcess(
                line,
                folder: folder,
                environment: place.environment,
                take: { _ in },
                flood: {}
            )
            process.closeInput()
            let status = await process.end(within: Self.patience)
            state.withLock { $0.complaints = Array(($0.complaints + process.complaints).suffix(20)) }
            guard let status else {
                return ledger.fail(Undriven("the command does not end within \(Self.patience.components.seconds) s"))
            }
            guard status != 0 else { return }
            guard let push else { return ledger.noteFailure() }
            ledger.note(ExamWord(outcome: .failed, time: ServiceClock().now()), of: push)
        } catch {
            ledger.fail(error as? Undriven ?? Undriven("\(error)"))
        }
    }
}
