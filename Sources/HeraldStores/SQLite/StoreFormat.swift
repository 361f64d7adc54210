/// The format of a store, read without opening it.
package enum StoreFormat {
    /// The format that this version of Herald writes.
    package static var newest: UInt32 { Schema.current.format }

    /// The format of a store that this process has not opened.
    /// - Returns: nil if there is none yet.
    /// - Throws: ``StoreError`` if it is newer, or no store.
    package static func inspect(_ path: String) throws -> UInt32? {
        try DatabaseFile(path: path).inspect(newestFormat: newest)
    }
}
