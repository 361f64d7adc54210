import HeraldStores
import HeraldTrust

/// The check that a copy of a data folder can be used.
///
/// It reads all that a start reads.
enum BackupCheck {
    /// Checks a copy of a folder without changing it; errors name the files of `original`, which has the same content.
    /// - Returns: The content of its store; nil if there is none because the service never ran.
    /// - Throws: ``CommandError/Code/folder``.
    static func check(_ copy: DataFolder, of original: String) throws -> DatabaseCopy.StoreContent? {
        do {
            try copy.checkFormat()
            let layout = TrustLayout(data: copy.path)
            try TrustBackup.check(layout)
            _ = try ConsoleTokenFile(folder: copy).read()
            try DatabaseCopy(of: .ledger, at: layout.ledger).check()
            return try copy.hasStore() ? try DatabaseCopy(of: .store, at: copy.databasePath).check() : nil
        } catch {
            // The copy is deleted when its check fails.
            throw CommandError(.folder, "\(error)".replacing("\(copy.path)/", with: "\(original)/"))
        }
    }
}
