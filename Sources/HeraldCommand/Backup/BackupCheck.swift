import HeraldStores
import HeraldTrust

/// The check that a copy of a data folder can be used.
///
/// It reads all that a start reads.
enum BackupCheck {
    /// Checks a folder without changing it.
    /// - Returns: The content of its store; nil if there is none because the service never ran.
    /// - Throws: ``CommandError/Code/folder``.
    static func check(_ folder: DataFolder) throws -> DatabaseCopy.StoreContent? {
        try folder.checkFormat()
        return try translatingCopyErrors {
            let layout = TrustLayout(data: folder.path)
            try TrustBackup.check(layout)
            try DatabaseCopy(of: .ledger, at: layout.ledger).check()
            return try folder.hasStore() ? try DatabaseCopy(of: .store, at: folder.databasePath).check() : nil
        }
    }

    /// Translates the errors of the trust folder and of the databases.
    static func translatingCopyErrors<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let error as TrustError {
            throw CommandError(error)
        } catch let error as StoreError {
            throw CommandError(error.code == .cannotWrite ? .file : .folder, error.message)
        }
    }
}
