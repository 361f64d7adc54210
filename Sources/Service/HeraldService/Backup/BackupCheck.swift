import HeraldStores
import HeraldTrust

/// The check that a copy of a data folder can be used.
///
/// It reads all that a start reads.
enum BackupCheck {
    /// Checks a copy of a folder without changing it.
    /// - Parameters:
    ///   - copy: The copy.
    ///   - original: The folder with the same content, whose files an error names.
    /// - Returns: The content of its store; nil if there is none because the service never ran.
    /// - Throws: ``CommandError/Code/folder``.
    static func check(_ copy: DataFolder, of original: String) throws -> DatabaseCopy.StoreContent? {
        do {
            try copy.checkFormat()
            return try translatingCopyErrors {
                let layout = TrustLayout(data: copy.path)
                try TrustBackup.check(layout)
                _ = try ConsoleTokenFile(folder: copy).read()
                try DatabaseCopy(of: .ledger, at: layout.ledger).check()
                return try copy.hasStore() ? try DatabaseCopy(of: .store, at: copy.databasePath).check() : nil
            }
        } catch let error as CommandError {
            // The copy is deleted when its check fails.
            throw CommandError(error.code, error.message.replacing("\(copy.path)/", with: "\(original)/"))
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
