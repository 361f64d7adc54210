import GRDB
import HeraldIdentity
import Logging

/// A consistent copy of one of Herald's two databases, made while other processes use it, and the check of a copy.
///
/// `VACUUM INTO` copies one snapshot, and leaves out deleted content. The copy is one file without a log. Opening the
/// original changes nothing in it.
package struct DatabaseCopy: Sendable {
    /// The database that is copied.
    package enum Kind: Sendable {
        /// `store/herald.db`, in which only the service writes.
        case store
        /// `trust/ledger.db`, in which commands write, too.
        case ledger
    }

    package struct StoreContent: Hashable, Sendable {
        /// Notifications that wait for a device.
        package let waiting: Int
        /// Devices that have connected at least once.
        package let devices: Int
        /// Rows that cannot be read: blocks of notifications, devices, apps and registrations.
        package let damaged: Int
    }

    /// How long another process may keep the ledger locked, in seconds.
    private static let lockTimeout = 30.0

    private let kind: Kind
    private let path: String

    package init(of kind: Kind, at path: String) {
        self.kind = kind
        self.path = path
    }

    /// Writes a copy to a path at which there is no file; the caller syncs it.
    /// - Throws: ``StoreError``; a part of the copy may be there.
    package func write(to target: String) throws {
        do {
            // Not from a file of another program or a newer Herald.
            if kind == .store { _ = try DatabaseFile(path: path).inspect(newestFormat: Schema.current.format) }
            // SQLite would make a missing ledger.
            guard TrustFile.exists(path) else { throw StoreError(.damaged, "\(path) is missing: \(remedy)") }
            let source = try open(path, isReadOnly: kind == .store)
            try source.writeWithoutTransaction { database in
                if kind == .ledger { try TrustDatabase.check(database, path, newestFormat: TrustTables.schema.format) }
                try database.execute(sql: "VACUUM INTO ?", arguments: [target])
            }
            try source.close()
            guard kind == .store else { return }
            let copy = try open(target, isReadOnly: false)
            // The copy is checked completely, so the start need not do it.
            try copy.writeWithoutTransaction { try StoreSettings.set("is_clean", 1, $0) }
            try copy.close()
        } catch {
            throw failure(error, target: target)
        }
    }

    /// Checks a copy completely, without changing it.
    /// - Returns: The content of a store; nil for the ledger.
    /// - Throws: ``StoreError`` if it is damaged, of a newer Herald, or no such database.
    @discardableResult
    package func check() throws -> StoreContent? {
        do {
            if kind == .store, try DatabaseFile(path: path).inspect(newestFormat: Schema.current.format) == nil {
                throw StoreError(.damaged, "\(path) is empty or missing: \(remedy)")
            }
            let copy = try open(path, isReadOnly: true)
            defer { try? copy.close() }
            return try copy.writeWithoutTransaction { database in
                if kind == .ledger { try TrustDatabase.check(database, path, newestFormat: TrustTables.schema.format) }
                let answer = try String.fetchOne(database, sql: "PRAGMA integrity_check(1)") ?? "no answer"
                guard answer == "ok" else { throw StoreError(.damaged, "\(path) is damaged (\(answer)): \(remedy)") }
                return kind == .store ? try content(database) : nil
            }
        } catch {
            throw failure(error, target: path)
        }
    }

    /// The remedy for a lost or damaged database.
    private var remedy: String {
        kind == .store ? "restore an earlier backup (docs/operations/backup.md)" : TrustError.copyFromBackup
    }

    /// Reads as much as a start does.
    private func content(_ database: Database) throws -> StoreContent {
        var waiting = 0
        var damaged = 0
        try SegmentReader.scan(database, { _ in waiting += 1 }, damaged: { _ in damaged += 1 })
        let logger = Logger(label: "herald.backup") { _ in SwiftLogNoOpLogHandler() }
        let rows = DamagedRows(logger: logger)
        let devices = try RegistryTable.loadDevices(database, rows).count
        return StoreContent(waiting: waiting, devices: devices, damaged: damaged + rows.total)
    }

    private func open(_ path: String, isReadOnly: Bool) throws -> DatabaseQueue {
        var settings = Configuration()
        settings.label = "herald-backup"
        settings.readonly = isReadOnly
        settings.foreignKeysEnabled = false
        settings.busyMode = .timeout(Self.lockTimeout)
        settings.prepareDatabase { database in
            // Herald copies the log of its store itself (see ``DatabaseOpener``).
            try database.execute(sql: "PRAGMA mmap_size = 0; PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY")
        }
        return try DatabaseQueue(path: path, configuration: settings)
    }

    private func failure(_ error: any Error, target: String) -> StoreError {
        switch error {
        case let error as StoreError: return error
        case let error as TrustError: return StoreError(.damaged, error.message)
        case let error as DatabaseError:
            let reason = "\(error.message ?? "no reason given"), SQLite error \(error.extendedResultCode.rawValue)"
            switch error.resultCode {
            case .SQLITE_FULL:
                return StoreError(.cannotWrite, "cannot write \(target): the disk is full")
            case .SQLITE_CORRUPT, .SQLITE_NOTADB:
                return StoreError(.damaged, "\(path) is damaged (\(reason)): \(remedy)")
            case .SQLITE_BUSY, .SQLITE_LOCKED:
                return StoreError(
                    .cannotOpen,
                    "another process has locked \(path) for \(Int(Self.lockTimeout)) seconds: try again"
                )
            case .SQLITE_CANTOPEN, .SQLITE_PERM, .SQLITE_READONLY, .SQLITE_AUTH:
                return StoreError(
                    .cannotOpen,
                    "cannot open \(path) (\(reason)): run the command as the owner, or as root"
                )
            default:
                return StoreError(.cannotRead, "cannot copy \(path) to \(target): \(reason)")
            }
        default:
            return StoreError(.cannotRead, "cannot copy \(path) to \(target): \(error)")
        }
    }
}
