import GRDB
import Logging

/// The check whether a start accepts a store.
package enum StoreCheck {
    /// The format that this version of Herald writes.
    package static var newestFormat: UInt32 { Schema.current.format }

    /// The format of a store that this process has not opened.
    /// - Returns: nil if there is none yet.
    /// - Throws: ``StoreError`` if it is newer, or no store.
    package static func format(of path: String) throws -> UInt32? {
        try DatabaseFile(path: path).inspect(newestFormat: newestFormat)
    }

    /// Reads what a start reads, with the same code, and changes nothing.
    ///
    /// For a store that no process has open. A start first migrates one of an older format, which is not read here.
    /// - Returns: The format; nil if there is no store yet.
    /// - Throws: ``StoreError`` if a start would.
    package static func run(_ path: String) throws -> UInt32? {
        let found = try format(of: path)
        guard found == newestFormat else { return found }
        let logger = Logger(label: "herald.check") { _ in SwiftLogNoOpLogHandler() }
        let file = DatabaseFile(path: path)
        let opener = DatabaseOpener(file: file, configuration: SQLiteStoreConfiguration(), logger: logger)
        do {
            let connection = try opener.checker()
            try connection.writeWithoutTransaction { database in
                try opener.checkOwner(database)
                try opener.checkContent(database)
                try SegmentReader.scan(database, { _ in }, damaged: { _ in })
                let damage = DamagedRows(logger: logger)
                _ = try RegistryTable.loadDevices(database, damage)
                _ = try RegistryTable.loadRegistrations(database, damage)
                _ = try AppTable.load(database, damage)
                _ = try ChannelTable.load(database, damage)
            }
            try connection.close()
        } catch {
            throw StoreError(opening: error, path: path)
        }
        return found
    }
}
