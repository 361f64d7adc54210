import Foundation

/// Says that a relay works on a queue's file: one at a time.
///
/// A relay that starts takes over what the one before had in hand. The lock ends with the process, however that ends.
package final class QueueLock: Sendable {
    private let descriptor: Int32

    private init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit {
        close(descriptor)
    }

    /// Takes the lock of a queue; nil for a database that many relays share.
    /// - Throws: ``RelayStoreError/Code/unusable`` if another relay has it.
    package static func take(_ address: DatabaseAddress) throws -> QueueLock? {
        guard case .sqlite(let path) = address else { return nil }
        if let error = RelayStoreError.noFolder(for: path) { throw error }
        // Not the file itself: closing any descriptor of it would drop the locks of SQLite.
        let lock = path + "-relay"
        let descriptor = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw RelayStoreError(.unusable, "cannot make \(lock): \(String(cString: strerror(errno)))")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            close(descriptor)
            throw RelayStoreError(
                .unusable,
                "another relay works on \(path): stop it first; many relays share a queue in PostgreSQL"
            )
        }
        return QueueLock(descriptor)
    }
}
