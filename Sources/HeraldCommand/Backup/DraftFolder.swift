import Foundation

/// A folder that is being written, and that becomes visible only when it is whole.
///
/// The lock on it shows whether its process still lives: what an interrupted one left behind is removed.
final class DraftFolder {
    let path: String
    private let descriptor: CInt

    /// Makes the folder with its parts, all of mode 0700.
    /// - Throws: ``CommandError/Code/folderInUse`` if another process writes it, ``CommandError/Code/file``.
    init(_ path: String, parts: [String]) throws {
        self.path = path
        if mkdir(path, 0o700) != 0 {
            guard errno == EEXIST else { throw SafeFile.failure("cannot make the folder", path) }
        }
        descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { throw SafeFile.failure("cannot open the folder", path) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            throw CommandError(.folderInUse, "another process is writing \(path): wait for its end")
        }
        try Self.empty(path)
        for part in parts where mkdir("\(path)/\(part)", 0o700) != 0 {
            throw SafeFile.failure("cannot make the folder", "\(path)/\(part)")
        }
    }

    deinit {
        close(descriptor)
    }

    /// Removes the folder with all that is in it.
    func remove() {
        // Best effort: the next attempt removes it.
        try? FileManager.default.removeItem(atPath: path)
    }

    private static func empty(_ path: String) throws {
        do {
            for name in try FileManager.default.contentsOfDirectory(atPath: path) {
                try FileManager.default.removeItem(atPath: "\(path)/\(name)")
            }
        } catch {
            throw CommandError(.file, "cannot empty \(path), which an interrupted command left: remove it")
        }
    }
}
