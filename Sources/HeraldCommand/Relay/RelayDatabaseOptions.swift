import ArgumentParser
import Foundation
import HeraldMailbox
import HeraldModel
import HeraldRelay

/// Which queue a command of `herald relay` works on.
struct RelayDatabaseOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The queue: sqlite:///absolute/path, or postgresql://user@host/name.", valueName: "url")
    )
    var database: String?

    @Option(help: ArgumentHelp("The relay's configuration file, which may name the queue.", valueName: "file"))
    var config: String?

    /// The queue's address, from the command line, the environment or the file.
    func address(environment: [String: String] = ProcessInfo.processInfo.environment) throws -> DatabaseAddress {
        let settings = try Settings(commandLine: [:], environment: environment, file: config)
        guard let text = try database ?? settings.text(.database) else {
            throw ValidationError("Say which queue: --database sqlite:///absolute/path or postgresql://user@host/name.")
        }
        return try DatabaseAddress(text)
    }

    /// Does something with a queue that is there: a mistyped path is told, and not made into an empty queue.
    ///
    /// Tables that an earlier version did not have are made.
    /// - Throws: ``CommandError/Code/file`` if there is no queue.
    func withStore<Value>(_ body: (SQLRelayStore) async throws -> Value) async throws -> Value {
        let address = try address()
        let missing = CommandError(
            .file,
            "there is no queue at \(address): look whether that is right; `herald relay run` makes a queue when it starts"
        )
        if case .sqlite(let path) = address, !FileManager.default.fileExists(atPath: path) { throw missing }
        let store = try SQLRelayStore.open(address)
        do {
            guard try await store.hasQueue() else { throw missing }
            try await store.prepare()
            let value = try await body(store)
            await store.close()
            return value
        } catch {
            await store.close()
            throw error
        }
    }
}

/// Which rows a command is about.
struct RowOptions: ParsableArguments {
    @Argument(help: "Rows by their id. (default: all that the options choose)")
    var ids: [Int64] = []

    @Option(help: ArgumentHelp("sent, refused, expired or failed; may be repeated.", valueName: "status"))
    var status: [FinalStatus] = []

    @Option(help: ArgumentHelp("Only rows with this reason.", valueName: "reason"))
    var reason: String?

    @Option(help: ArgumentHelp("Only rows of this topic.", valueName: "id"))
    var topic: String?

    @Option(help: ArgumentHelp("Only rows queued longer ago than this, like 7d.", valueName: "time"))
    var olderThan: String?

    /// The rows, of these statuses unless others were named.
    func selection(_ statuses: [FinalStatus], now: WallTime) throws -> RowSelection {
        var before: WallTime?
        if let olderThan {
            guard let age = DurationText.read(olderThan) else {
                throw ValidationError("'\(LogText.escaped(olderThan, limit: 64))' is no span of time, like 7d.")
            }
            before = now - age
        }
        return RowSelection(
            ids: ids.isEmpty ? nil : ids,
            statuses: status.isEmpty ? statuses : status,
            reason: reason,
            topic: topic,
            before: before
        )
    }
}

extension FinalStatus: ExpressibleByArgument {}

/// How many rows a command changed, as it prints it with `--json`.
struct ChangeReport: Encodable {
    let changed: Int
}
