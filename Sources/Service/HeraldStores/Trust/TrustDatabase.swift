import Foundation
import GRDB
import GRDBSQLite
import HeraldIdentity
package import HeraldTrust

/// The ledger in a SQLite file, `trust/ledger.db`, which a service and commands use at the same time.
///
/// It uses a rollback journal, since SQLite before 3.51.3 can corrupt a write-ahead log that several processes checkpoint.
/// A transaction takes the write lock at its start, and waits while another process has it. `synchronous` EXTRA makes a
/// commit durable when it returns. The work runs on the connection's own thread, never on the caller's.
package final class TrustDatabase: Sendable {
    /// `HRLT`, in the header's application identifier.
    static let applicationID: Int64 = 0x4852_4C54
    /// Time limit for the lock of another process's transaction.
    static let lockTimeout = 10.0

    let path: String
    private let queue: DatabaseQueue

    /// Opens the ledger of a trust folder, or creates it.
    ///
    /// Owner and mode must keep others out, as for every secret file of the folder.
    /// - Throws: `TrustError`; a file that is damaged, foreign or newer stays unchanged.
    package static func open(_ layout: TrustLayout, mayCreate: Bool) throws -> any TrustStore {
        let isNew = mayCreate && !TrustFile.exists(layout.ledger)
        if isNew { try TrustFile.createSecret(layout.ledger) }
        let isEmpty = try TrustFile.checkSecret(layout.ledger) == 0
        guard !isEmpty || mayCreate else {
            throw TrustError(.damaged, "\(layout.ledger) is empty: \(TrustError.copyFromBackup)")
        }
        do {
            return try TrustDatabase(path: layout.ledger, isNew: isEmpty)
        } catch {
            throw TrustError(error, path: layout.ledger, isWrite: false)
        }
    }

    /// Opens the ledger of a trust folder without changing it.
    /// - Throws: `TrustError`, also if an interrupted change must be undone first.
    package static func openToRead(_ layout: TrustLayout, mayCreate: Bool) throws -> any TrustStore {
        guard try TrustFile.checkSecret(layout.ledger) > 0 else {
            throw TrustError(.damaged, "\(layout.ledger) is empty: \(TrustError.copyFromBackup)")
        }
        do {
            return try TrustDatabase(path: layout.ledger, isNew: false, isReadOnly: true)
        } catch {
            throw TrustError(error, path: layout.ledger, isWrite: false)
        }
    }

    private init(path: String, isNew: Bool, isReadOnly: Bool = false, schema: Schema = TrustTables.schema) throws {
        self.path = path
        var settings = Configuration()
        settings.label = "herald-ledger"
        settings.readonly = isReadOnly
        settings.busyMode = .timeout(TrustDatabase.lockTimeout)
        settings.foreignKeysEnabled = false
        settings.prepareDatabase { database in
            try database.execute(sql: "PRAGMA mmap_size = 0; PRAGMA synchronous = EXTRA; PRAGMA temp_store = MEMORY")
        }
        queue = try DatabaseQueue(path: path, configuration: settings)
        try queue.writeWithoutTransaction { database in
            if !isNew { try TrustDatabase.check(database, path, newestFormat: schema.format) }
            guard !isReadOnly, try Schema.format(of: database) != schema.format else { return }
            try database.execute(sql: "PRAGMA application_id = \(TrustDatabase.applicationID)")
            try schema.apply(to: database)
        }
    }

    /// Checks the owner, the format and the journal of an open ledger.
    static func check(_ database: Database, _ path: String, newestFormat: UInt32) throws {
        guard try Int64.fetchOne(database, sql: "PRAGMA application_id") == applicationID else {
            throw TrustError(
                .damaged,
                "\(path) is damaged, or a database of another program: \(TrustError.copyFromBackup)"
            )
        }
        let format = try Schema.format(of: database)
        guard format <= newestFormat else {
            throw TrustError(
                .damaged,
                "\(path) was written by a newer Herald (format \(format), this one reads up to \(newestFormat)): "
                    + "start the newer version, or restore a backup from before the upgrade"
            )
        }
        guard try String.fetchOne(database, sql: "PRAGMA journal_mode") == "delete" else {
            throw TrustError(
                .damaged,
                "\(path) does not use a rollback journal: run `sqlite3 \(path) 'PRAGMA journal_mode = DELETE'`"
            )
        }
    }

    /// Makes a change in one transaction.
    func change<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        try await run(isWrite: true) { database in
            var value: Value?
            try database.inTransaction(.immediate) {
                value = try body(database)
                return .commit
            }
            guard let value else { throw TrustError(.unexpected, "a transaction of the ledger did not end") }
            return value
        }
    }

    /// Reads with one statement.
    func read<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        try await run(isWrite: false, body)
    }

    private func run<Value: Sendable>(
        isWrite: Bool,
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            queue.asyncWriteWithoutTransaction { [path] database in
                continuation.resume(
                    with: Result { try body(database) }.mapError { TrustError($0, path: path, isWrite: isWrite) }
                )
            }
        }
    }
}

extension TrustError {
    /// Maps an error of the ledger's database.
    fileprivate init(_ error: any Error, path: String, isWrite: Bool) {
        guard let error = error as? DatabaseError else {
            self = error as? TrustError ?? TrustError(.unexpected, "cannot use \(path): \(error)")
            return
        }
        let reason = "\(error.message ?? "no reason given"), SQLite error \(error.extendedResultCode.rawValue)"
        switch error.resultCode {
        case .SQLITE_CORRUPT, .SQLITE_NOTADB:
            self.init(.damaged, "\(path) is damaged (\(reason)): \(TrustError.copyFromBackup)")
        case .SQLITE_FULL:
            self.init(.unwritable, "cannot write \(path): the disk is full; free some space, and repeat the command")
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            self.init(
                isWrite ? .unwritable : .unreadable,
                "another process has locked \(path) for \(Int(TrustDatabase.lockTimeout)) seconds: try again"
            )
        case .SQLITE_READONLY where error.extendedResultCode == .SQLITE_READONLY_ROLLBACK:
            self.init(
                .unreadable,
                "a change of \(path) was interrupted: run `herald provider list`, or start the service, which undoes it"
            )
        case .SQLITE_ERROR where error.message?.hasPrefix("no such ") == true:
            self.init(
                .damaged,
                "\(path) lacks something that this Herald needs (\(reason)): a build from between two releases wrote it, and "
                    + "no release reads it; start with a new data folder"
            )
        default:
            self.init(isWrite ? .unwritable : .unreadable, "cannot \(isWrite ? "write" : "read") \(path): \(reason)")
        }
    }
}
