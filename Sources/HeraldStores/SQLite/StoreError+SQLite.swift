import GRDB

extension StoreError {
    /// Why the store's file cannot be opened.
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
                    "cannot open the store \(path) (\(reason)); give its owner the right to write to it and to its folder"
                )
            case .SQLITE_BUSY, .SQLITE_LOCKED:
                self.init(.cannotOpen, "another process uses the store \(path); stop it first")
            case .SQLITE_FULL:
                self.init(.cannotWrite, "the disk of the store \(path) is full; make room on it")
            default:
                self.init(.cannotOpen, "cannot open the store \(path): \(reason)")
            }
        default:
            self.init(.cannotOpen, "cannot open the store \(path): \(error)")
        }
    }

    /// Why a write failed, and with it whether a later one may be believed.
    ///
    /// After a failed sync the kernel may have dropped the pages and call the next sync a success; what was committed
    /// before is uncertain, and only a restart reads what is really there.
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
                    "the disk of the store \(path) failed to sync (\(reason)); nothing more is stored: check the disk, "
                        + "then start again"
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

    /// Why a read failed.
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

    /// Whether nothing that the store says about writes can be believed from now on.
    var isFinal: Bool { code == .syncFailed || code == .damaged }

    private static func damaged(path: String, _ reason: String) -> StoreError {
        StoreError(
            .damaged,
            "the store \(path) is damaged (\(reason)); restore it from a backup, or move it away: the next start says how "
                + "to begin with an empty one"
        )
    }

    /// SQLite's own words and number; never the statement or its arguments.
    private static func reason(_ error: DatabaseError) -> String {
        "\(error.message ?? "no reason given"), SQLite error \(error.extendedResultCode.rawValue)"
    }
}
