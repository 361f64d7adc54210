import Foundation

/// The files of a SQLite queue, which hold payloads and device tokens.
enum QueueFile {
    private static let suffixes = ["", "-journal", "-wal", "-shm"]

    /// Makes a missing file, for its owner alone.
    ///
    /// SQLite gives the files beside it the same mode.
    static func make(_ path: String) throws(RelayStoreError) {
        if let error = RelayStoreError.noFolder(for: path) { throw error }
        // An existing file stays closed: to close its descriptor would release the locks of SQLite in this process.
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        if descriptor >= 0 {
            close(descriptor)
        } else if errno != EEXIST {
            throw RelayStoreError(.unusable, "cannot make the queue \(path): \(String(cString: strerror(errno)))")
        }
    }

    /// A warning about files that every user of this machine may read or write; nil if there are none.
    static func warning(_ path: String) -> String? {
        let loose = suffixes.map { path + $0 }
            .filter { file in
                let attributes = try? FileManager.default.attributesOfItem(atPath: file)
                return (attributes?[.posixPermissions] as? Int ?? 0) & 0o007 != 0
            }
        guard !loose.isEmpty else { return nil }
        return """
            every user of this machine may read or write the queue, which holds payloads and device tokens: \
            run `chmod o= \(loose.joined(separator: " "))`
            """
    }
}
