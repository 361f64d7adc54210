import ArgumentParser
import Foundation
import HeraldMailbox
import HeraldModel
import HeraldRelay
import HeraldService

/// The queue of a command of `herald relay`.
struct RelayDatabaseOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The queue: sqlite:///absolute/path, or postgresql://user@host/name.", valueName: "url")
    )
    var database: String?

    @Option(
        help: ArgumentHelp(
            "What the names of the relay's tables begin with, like herald_. (default: nothing)",
            valueName: "text"
        )
    )
    var tablePrefix: String?

    @Option(help: ArgumentHelp("The relay's configuration file, which may name the queue.", valueName: "file"))
    var config: String?

    /// The queue's address and the names of its tables, from the command line, the environment or the file.
    func place(
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws -> (address: DatabaseAddress, tables: TableNames) {
        let settings = try Settings(environment: environment, file: config, of: .relay)
        guard let text = try database ?? settings.text(.database) else {
            throw ValidationError("Name the queue: --database sqlite:///absolute/path or postgresql://user@host/name.")
        }
        let prefix = try tablePrefix ?? settings.text(.tablePrefix)
        return (try DatabaseAddress(text), try TableNames(prefix: prefix ?? ""))
    }

    /// Works on an existing queue, and never creates one at a mistyped path.
    /// - Throws: ``CommandError/Code/file`` if there is no queue.
    func withStore<Value>(_ body: (RelayStore) async throws -> Value) async throws -> Value {
        let (address, tables) = try place()
        let missing = CommandError(
            .file,
            """
            there is no queue at \(address)\(tables.prefix.isEmpty ? "" : " with the table prefix \(tables.prefix)"): check the \
            address\(tables.prefix.isEmpty ? "" : " and --table-prefix"); `herald relay run` creates a queue
            """
        )
        if case .sqlite(let path) = address, !FileManager.default.fileExists(atPath: path) { throw missing }
        let store = try RelayStore.open(address, tables: tables)
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

/// The rows of a command.
struct RowOptions: ParsableArguments {
    @Argument(help: "Rows by id. (default: all that match the options)")
    var ids: [Int64] = []

    @Option(help: ArgumentHelp("sent, refused, expired or failed; may be repeated.", valueName: "status"))
    var status: [FinalStatus] = []

    @Option(help: ArgumentHelp("Only rows with this reason.", valueName: "reason"))
    var reason: String?

    @Option(help: ArgumentHelp("Only rows of this topic.", valueName: "id"))
    var topic: String?

    @Option(help: ArgumentHelp("Only rows queued longer ago than this, like 7d.", valueName: "time"))
    var olderThan: String?

    /// The chosen rows; of these statuses unless others were named.
    func selection(_ statuses: [FinalStatus], now: WallTime) throws -> RowSelection {
        var before: WallTime?
        if let olderThan {
            guard let age = DurationText.readWithUnit(olderThan) else {
                let text = LogText.escaped(olderThan, limit: 64)
                throw ValidationError("--older-than '\(text)' \(DurationText.refusal(text)).")
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

extension LeftOutRows {
    /// One sentence for each row that was named and left out, and one for rows whose age nobody knows.
    func notes(_ selection: RowSelection) -> [String]? {
        var notes = named.map { row in
            switch row.status {
            case nil: "there is no row \(row.id)"
            case "queued": "row \(row.id) is queued already"
            case let status? where !selection.statuses.contains { $0.rawValue == status }:
                "row \(row.id) is \(status): add --status \(status)"
            default:
                row.parent.map { "row \(row.id) is a part of row \($0): name that" } ?? "row \(row.id) does not match"
            }
        }
        if undated > 0 {
            notes.append(
                "rows without a readable time, which --older-than leaves out: \(undated); take them by id or --status alone"
            )
        }
        return notes.isEmpty ? nil : notes
    }
}

/// The number of changed rows, as `--json` prints it.
struct ChangeReport: Encodable {
    let changed: Int
    /// Why rows were left out; nil if none was.
    let notes: [String]?
}
