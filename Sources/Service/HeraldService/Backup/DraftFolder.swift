import CPosix
import Foundation

/// A folder that is being written, and that becomes visible only when it is whole.
///
/// The lock on it shows whether its process still lives: what an interrupted one left behind is removed.
final class DraftFolder {
    let path: String
    private let descriptor: CInt

    /// Makes the folder with its parts, all of mode 0700.
    ///
    /// A folder that an interrupted command left is emptied, if it is this user's and has only parts of a backup.
    /// - Throws: ``CommandError/Code/folderInUse`` if another process writes it, ``CommandError/Code/file``.
    init(_ path: String, parts: [String]) throws {
        self.path = path
        if mkdir(path, 0o700) != 0 {
            guard errno == EEXIST else { throw SafeFile.failure("cannot make the folder", path) }
        }
        descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOTDIR || errno == ELOOP { throw CommandError(.file, "\(path) is not a folder: move it away") }
            throw SafeFile.failure("cannot open the folder", path)
        }
        var status = herald_status()
        guard herald_status_of_descriptor(descriptor, &status) == 0 else { throw SafeFile.failure("cannot read", path) }
        guard status.user == geteuid(), status.mode & 0o777 == 0o700 else {
            throw CommandError(
                .file,
                "\(path) is there, and belongs to user \(status.user) with mode 0\(String(status.mode & 0o777, radix: 8)), "
                    + "but an interrupted command leaves a folder of user \(geteuid()) with mode 0700: move it away"
            )
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            throw CommandError(.folderInUse, "another process is writing \(path): wait for its end")
        }
        if let stranger = Self.stranger(in: path) {
            throw CommandError(.file, "\(path) holds \(stranger), which is not part of a backup: move the folder away")
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

    /// The first entry that no backup or restore makes, relative to the folder; nil if there is none.
    private static func stranger(in path: String) -> String? {
        let names = { (folder: String) in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] }
        for name in names(path).sorted() {
            guard BackupLayout.folders.contains(name) else {
                if BackupLayout.isDraftFile(name), isFile("\(path)/\(name)") { continue }
                return name
            }
            for entry in names("\(path)/\(name)").sorted() {
                let isPart = name == "trust" || BackupLayout.isDraftFile("\(name)/\(entry)")
                guard isPart, isFile("\(path)/\(name)/\(entry)") else { return "\(name)/\(entry)" }
            }
        }
        return nil
    }

    private static func isFile(_ path: String) -> Bool {
        var status = herald_status()
        return herald_status(path, 0, &status) == 0 && mode_t(status.mode) & S_IFMT == S_IFREG
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
