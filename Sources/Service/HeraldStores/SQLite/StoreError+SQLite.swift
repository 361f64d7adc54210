import GRDB

extension StoreError {
    /// Maps an error of opening the store's file.
    init(opening error: any Error, path: String) {
        switch error {
        case let error as StoreError:
            self = error
        case let error as DatabaseError:
            let reason = StoreError.reason(error)
            switch error.resultCode {
            case .SQLITE_CORRUPT, .SQLITE_NOTADB:
                self = .damaged(path: path, reason)
            case .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_CANTOPEN:
                self.init(
                    .notWritable,
                    "cannot open the store \(path) (\(reason)); give its owner write permission for it and its folder"
                )
            case .SQLITE_BUSY, .SQLITE_LOCKED:
                self.init(.cannotOpen, "another process uses the store \(path); stop it first")
            case .SQLITE_FULL:
                self.init(.cannotWrite, "the disk of the store \(path) is full; free some space")
            default:
                self.init(.cannotOpen, "cannot open the store \(path): \(reason)")
            }
        default:
            self.init(.cannotOpen, "cannot open the store \(path): \(error)")
        }
    }

    /// Maps an error of a write.
    ///
    /// After a failed sync, the kernel may drop the pages and report success for the next sync. Earlier commits are then
    /// uncertain, and only a restart reads the disk's real content.
    init(writing error: any Error, path: String) {
        switch error {
        case let error as StoreError:
            self = error
        case let error as DatabaseError:
            let reason = StoreError.reason(error)
            switch error.extendedResultCode {
            case .SQLITE_IOERR_FSYNC, .SQLITE_IOERR_DIR_FSYNC:
                self.init(
                    .syncFailed,
                    "the disk of the store \(path) failed to sync (\(reason)); check the disk, then start Herald again"
                )
            case let code where code.primaryResultCode == .SQLITE_CORRUPT || code.primaryResultCode == .SQLITE_NOTADB:
                self = .damaged(path: path, reason)
            default:
                self.init(.cannotWrite, "cannot write the store \(path): \(reason)")
            }
        default:
            self.init(.cannotWrite, "cannot write the store \(path): \(error)")
        }
    }

    /// Maps an error of a read.
    init(reading error: any Error, path: String) {
        switch error {
        case let error as StoreError:
            self = error
        case let error as DatabaseError
        where error.resultCode == .SQLITE_CORRUPT || error.resultCode == .SQLITE_NOTADB:
            self = .damaged(path: path, StoreError.reason(error))
        case let error as DatabaseError:
            self.init(.cannotRead, "cannot read the store \(path): \(StoreError.reason(error))")
        default:
            self.init(.cannotRead, "cannot read the store \(path): \(error)")
        }
    }

    /// Whether no later success of a write can be trusted.
    var isFinal: Bool { code == .syncFailed || code == .damaged }

    private static func damaged(path: String, _ reason: String) -> StoreError {
        StoreError(
            .damaged,
            "the store \(path) is damaged (\(reason)); restore it from a backup, or move it away and start Herald, "
                + "which then says how to begin with an empty store"
        )
    }

    /// SQLite's message and code, without the statement and its arguments.
    private static func reason(_ error: DatabaseError) -> String {
        "\(error.message ?? "no reason given"), SQLite error \(error.extendedResultCode.rawValue)"
    }
}
