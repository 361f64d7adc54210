import Foundation

/// The exclusive lock of a data folder: `flock` on `run/lock`, which ends with the process.
///
/// The file holds the process's identifier, for people only.
package final class FolderLock: Sendable {
    private let descriptor: CInt

    private init(descriptor: CInt) {
        self.descriptor = descriptor
    }

    deinit {
        close(descriptor)
    }

    /// The result of an attempt.
    package enum Attempt {
        case taken(FolderLock)
        /// Another process holds it; its identifier, if the file could be read.
        case held(by: Int32?)
    }

    /// Tries to take the lock, without waiting.
    /// - Throws: ``CommandError/Code/file`` if the file cannot be opened.
    package static func attempt(_ folder: DataFolder) throws -> Attempt {
        let descriptor = open(folder.lockPath, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw SafeFile.failure("cannot open the lock", folder.lockPath) }
        let lock = FolderLock(descriptor: descriptor)
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            guard errno == EWOULDBLOCK else { throw SafeFile.failure("cannot lock", folder.lockPath) }
            return .held(by: lock.writtenIdentifier())
        }
        lock.writeIdentifier()
        return .taken(lock)
    }

    /// Takes the lock for a service or an import; waits for a command, which holds the folder for a moment.
    ///
    /// `remedy` ends the error's "stop it first, …".
    /// - Throws: ``CommandError/Code/folderInUse`` if a service has it, or another process for long; `CancellationError`.
    package static func take(
        _ folder: DataFolder,
        or remedy: String = "or name another folder with --data"
    ) async throws -> FolderLock {
        let end = ContinuousClock.now + patience
        while true {
            switch try attempt(folder) {
            case .taken(let lock): return lock
            case .held(let holder):
                let isService = holder != nil && ServeRecord.read(from: folder)?.record.pid == holder
                guard !isService, .now < end else { throw inUse(folder, by: holder, remedy) }
                try await Task.sleep(for: .milliseconds(50))
            }
        }
    }

    /// How long a service or an import waits for a command.
    private static let patience = Duration.seconds(5)

    private static func inUse(_ folder: DataFolder, by holder: Int32?, _ remedy: String) -> CommandError {
        let name = holder.map { "process \($0)" } ?? "another process"
        return CommandError(.folderInUse, "\(name) is working on \(folder.path): stop it first, \(remedy)")
    }

    /// Lets others take it.
    func release() {
        _ = flock(descriptor, LOCK_UN)
    }

    private func writtenIdentifier() -> Int32? {
        let text = String(
            unsafeUninitializedCapacity: 16,
            initializingUTF8With: { max(0, pread(descriptor, $0.baseAddress, $0.count, 0)) }
        )
        return Int32(text.prefix { $0.isNumber })
    }

    private func writeIdentifier() {
        let text = Array("\(getpid())\n".utf8)
        // For people only, so a failure (a full disk) does not matter.
        _ = ftruncate(descriptor, 0)
        _ = text.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
    }
}
