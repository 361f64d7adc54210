import Foundation

/// Lock of a SQLite queue for one relay at a time, since a starting relay takes over the rows in flight.
///
/// The kernel releases it when the process ends. An orderly end removes its file, too.
package final class QueueLock: Sendable {
    private let descriptor: Int32
    private let path: String

    private init(_ descriptor: Int32, _ path: String) {
        self.descriptor = descriptor
        self.path = path
    }

    deinit {
        unlink(path)
        close(descriptor)
    }

    /// Takes the lock of a queue; nil for PostgreSQL, which many relays share.
    /// - Throws: ``RelayStoreError/Code/unavailable`` if another relay holds it.
    package static func take(_ address: DatabaseAddress) throws -> QueueLock? {
        guard case .sqlite(let path) = address else { return nil }
        if let error = RelayStoreError.noFolder(for: path) { throw error }
        // A file of its own: closing a descriptor of the database would release SQLite's locks.
        let lock = path + "-relay"
        let descriptor = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw RelayStoreError(.unavailable, "cannot make \(lock): \(String(cString: strerror(errno)))")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            close(descriptor)
            throw RelayStoreError(
                .unavailable,
                "another relay uses \(path): stop it first; to run several relays, use a queue in PostgreSQL"
            )
        }
        // A relay that ended since the file was opened has removed it, and a third one may have made another.
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_nlink > 0 else {
            close(descriptor)
            return try take(address)
        }
        return QueueLock(descriptor, lock)
    }
}
