import Foundation

/// The store's file, looked at from outside before SQLite opens it.
///
/// SQLite repairs and writes what it opens (it rolls back hot journals, copies write-ahead logs). A file that belongs to
/// somebody else must not be touched at all, so its header is read first, as plain bytes (SQLite's "Database File
/// Format" §1.3). Never while a connection is open: closing any descriptor of the file drops that connection's locks.
struct DatabaseFile {
    /// `HRLD`, in the header's application identifier.
    static let applicationID: UInt32 = 0x4852_4C44

    private static let headerLength = 100

    let path: String

    /// Checks that the file is missing, empty, or a store that this version can read.
    /// - Returns: Whether it holds anything.
    /// - Throws: ``StoreError`` for every other file.
    func inspect() throws -> Bool {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return false }
            throw StoreError(.cannotOpen, "cannot open the store \(path): \(DatabaseFile.reason(errno))")
        }
        defer { close(descriptor) }
        var header = [UInt8](repeating: 0, count: DatabaseFile.headerLength)
        let count = header.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
        guard count >= 0 else {
            throw StoreError(.cannotOpen, "cannot read the store \(path): \(DatabaseFile.reason(errno))")
        }
        guard count > 0 else { return false }
        try check(header: header.prefix(count))
        return true
    }

    private func check(header: ArraySlice<UInt8>) throws {
        guard header.count == DatabaseFile.headerLength, header.starts(with: Array("SQLite format 3\0".utf8)) else {
            throw StoreError(
                .foreignFile,
                "\(path) is not a Herald store; give another data folder, or, if it was one, restore it from a backup"
            )
        }
        try check(
            applicationID: DatabaseFile.bigEndian(header, at: 68),
            version: DatabaseFile.bigEndian(header, at: 60)
        )
    }

    /// Checks what the header, or an open connection, says of the file's owner and version.
    func check(applicationID: UInt32, version: UInt32) throws {
        guard applicationID == DatabaseFile.applicationID else {
            throw StoreError(
                .foreignFile,
                "\(path) is a database of another program; give another data folder"
            )
        }
        guard version <= Schema.version else {
            throw StoreError(
                .newerVersion,
                "the store \(path) was written by a newer Herald (format \(version), this one reads up to "
                    + "\(Schema.version)); start the newer version, or restore a backup from before the upgrade"
            )
        }
    }

    /// Makes an empty file that only its owner may read, and its entry in the folder durable.
    ///
    /// SQLite gives its log and index the mode of the file. It syncs the folder when it makes a log, not when it makes
    /// the database.
    func create() throws {
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            let reason = DatabaseFile.reason(errno)
            throw StoreError(.notWritable, "cannot create the store \(path): \(reason)")
        }
        close(descriptor)
        let folder = open(folderPath, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else {
            throw StoreError(.cannotOpen, "cannot open the folder \(folderPath): \(DatabaseFile.reason(errno))")
        }
        defer { close(folder) }
        guard fsync(folder) == 0 else {
            throw StoreError(.cannotOpen, "cannot sync the folder \(folderPath): \(DatabaseFile.reason(errno))")
        }
    }

    /// How many bytes the disk has left for this user; nil if it does not say.
    func freeSpace() -> Int? {
        var status = statvfs()
        guard statvfs(folderPath, &status) == 0 else { return nil }
        return Int(
            clamping: UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize)).partialValue
        )
    }

    private var folderPath: String {
        let folder = (path as NSString).deletingLastPathComponent
        return folder.isEmpty ? "." : folder
    }

    private static func bigEndian(_ bytes: ArraySlice<UInt8>, at offset: Int) -> UInt32 {
        bytes.dropFirst(offset).prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    }

    private static func reason(_ number: Int32) -> String {
        String(cString: strerror(number))
    }
}
