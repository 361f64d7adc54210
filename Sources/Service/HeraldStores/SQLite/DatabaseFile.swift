import CPosix
import Foundation

/// The store's file, inspected before SQLite opens it.
///
/// SQLite repairs and writes the files that it opens: it rolls back hot journals and copies write-ahead logs. A file of
/// another program must not change, so its header is read first, as plain bytes (SQLite's "Database File Format" §1.3).
/// Never call this while a connection is open: closing any descriptor of the file drops that connection's locks.
struct DatabaseFile {
    /// `HRLS`, in the header's application identifier.
    static let applicationID: UInt32 = 0x4852_4C53
    private static let headerLength = 100

    let path: String

    /// Checks that the file is missing, empty, or a store of a known format.
    /// - Returns: The format; nil if the file holds nothing.
    /// - Throws: ``StoreError`` for every other file.
    func inspect(newestFormat: UInt32) throws -> UInt32? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw StoreError(.cannotOpen, "cannot open the store \(path): \(DatabaseFile.reason(errno))")
        }
        defer { close(descriptor) }
        var header = [UInt8](repeating: 0, count: DatabaseFile.headerLength)
        let count = header.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
        guard count >= 0 else {
            throw StoreError(.cannotOpen, "cannot read the store \(path): \(DatabaseFile.reason(errno))")
        }
        guard count > 0 else { return nil }
        return try check(header: header.prefix(count), newestFormat: newestFormat)
    }

    private func check(header: ArraySlice<UInt8>, newestFormat: UInt32) throws -> UInt32 {
        guard header.count == DatabaseFile.headerLength, header.starts(with: Array("SQLite format 3\0".utf8)) else {
            throw StoreError(
                .foreignFile,
                "\(path) is not a Herald store; use another data folder, or restore the store from a backup"
            )
        }
        let format = DatabaseFile.bigEndian(header, at: 60)
        try check(applicationID: DatabaseFile.bigEndian(header, at: 68), format: format, newestFormat: newestFormat)
        return format
    }

    /// Checks the owner and format that the header, or an open connection, states.
    func check(applicationID: UInt32, format: UInt32, newestFormat: UInt32) throws {
        guard applicationID == DatabaseFile.applicationID else {
            throw StoreError(
                .foreignFile,
                "\(path) is damaged, or a database of another program; restore the store from a backup, or use another data folder"
            )
        }
        guard format <= newestFormat else {
            throw StoreError(
                .newerVersion,
                "the store \(path) was written by a newer Herald (format \(format), this one reads up to "
                    + "\(newestFormat)); start the newer version, or restore a backup from before the upgrade"
            )
        }
    }

    /// Creates an empty file that only its owner may read, and makes its folder entry durable.
    ///
    /// SQLite gives its log and index the mode of the file. It syncs the folder when it creates a log, not when it creates
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

    /// Free bytes on the disk for this user; nil if the system does not say.
    func freeSpace() -> Int? {
        var status = statvfs()
        guard statvfs(folderPath, &status) == 0 else { return nil }
        return Int(
            clamping: UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize)).partialValue
        )
    }

    /// Bytes of the file and its write-ahead log, as far as they are there.
    var size: Int {
        [path, path + "-wal"].reduce(0) { sum, path in
            var status = herald_status()
            return herald_status(path, 1, &status) == 0 ? sum + Int(status.size) : sum
        }
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
