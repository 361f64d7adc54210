import CPosix
import Foundation

/// Atomic and durable files: a reader sees the old or the new content, also after a loss of power.
package enum SafeFile {
    /// The longest file that is read into memory, in bytes; no certificate or configuration is as long.
    package static let maximumBytes = 1 << 20

    /// Writes a complete file beside the path, with its final mode, and renames it.
    ///
    /// The umask does not change the mode. `isNew` refuses an existing file, also one that another process makes
    /// meanwhile.
    /// - Throws: ``CommandError/Code/file``.
    package static func write(_ bytes: [UInt8], to path: String, mode: UInt32, isNew: Bool = false) throws {
        try check(path)
        let draft = "\(path).\(getpid()).new"
        unlink(draft)
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode_t(mode))
        guard descriptor >= 0 else { throw failure("cannot write", path) }
        do {
            defer { close(descriptor) }
            // The umask may have taken bits away.
            guard fchmod(descriptor, mode_t(mode)) == 0 else { throw failure("cannot write", path) }
            try writeAll(bytes, to: descriptor, path)
            guard fsync(descriptor) == 0 else { throw failure("cannot write", path) }
        } catch {
            unlink(draft)
            throw error
        }
        guard isNew ? placeNew(draft, path) : rename(draft, path) == 0 else {
            let error = failure("cannot write", path)
            unlink(draft)
            throw error
        }
        try syncFolder(of: path)
    }

    /// Gives a file its name, unless there is one of that name.
    private static func placeNew(_ draft: String, _ path: String) -> Bool {
        if link(draft, path) == 0 {
            unlink(draft)
            return true
        }
        // The file system has no links: the name is taken by an empty file first.
        guard [EPERM, ENOTSUP, ENOSYS].contains(errno) else { return false }
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return false }
        close(descriptor)
        return rename(draft, path) == 0
    }

    /// Reads a whole file of at most ``maximumBytes``.
    ///
    /// `isSecret` refuses a file that others may read, or that its group may write.
    /// - Throws: ``CommandError/Code/file``.
    package static func read(_ path: String, isSecret: Bool = false) throws -> [UInt8] {
        try check(path)
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("cannot read", path) }
        defer { close(descriptor) }
        var status = herald_status()
        guard herald_status_of_descriptor(descriptor, &status) == 0 else { throw failure("cannot read", path) }
        guard !isSecret || status.mode & 0o027 == 0 else {
            let digits = String(status.mode & 0o777, radix: 8)
            throw CommandError(.unusableFile, "\(path) is open to others (mode 0\(digits)): run `chmod 600 \(path)`")
        }
        var bytes: [UInt8] = []
        while true {
            let chunk = try [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
                let got = Foundation.read(descriptor, buffer.baseAddress, buffer.count)
                guard got >= 0 else { throw failure("cannot read", path) }
                count = got
            }
            if chunk.isEmpty { return bytes }
            bytes += chunk
            guard bytes.count <= maximumBytes else {
                throw CommandError(.unusableFile, "cannot read \(path): it is larger than \(maximumBytes) bytes")
            }
        }
    }

    /// Refuses the text of a key where the path of its file is meant, without showing it.
    private static func check(_ path: String) throws {
        guard !path.isEmpty else {
            throw CommandError(.file, "the path of a file is empty: name the file, or leave it out")
        }
        guard !path.contains("-----BEGIN") else {
            throw CommandError(
                .file,
                "a text in PEM stands where the path of its file belongs: write it to a file, and name that"
            )
        }
    }

    /// The system's last error; if another user is the reason, with that user's name.
    package static func failure(_ failure: String, _ path: String) -> CommandError {
        let number = errno
        let stranger = [EACCES, EPERM].contains(number) ? foreignOwner(of: path) : nil
        let isLasting = [ENOENT, ENOTDIR, EISDIR, ELOOP, EACCES, EPERM].contains(number)
        let code: CommandError.Code = isLasting ? .unusableFile : .file
        return CommandError(code, "\(failure) \(path): \(stranger ?? String(cString: strerror(number)))")
    }

    /// The first of the path, its folder, and the folders above, of which the system shows an owner: in words if that is
    /// another user.
    private static func foreignOwner(of path: String) -> String? {
        var place = path
        while true {
            if let owner = FolderOwner(of: place)?.user {
                guard owner != geteuid() else { return nil }
                return "\(place == path ? "it" : place) \(FolderOwner.refusal(of: owner))"
            }
            let above = folder(of: place)
            guard above != place else { return nil }
            place = above
        }
    }

    static func writeAll(_ bytes: [UInt8], to descriptor: CInt, _ path: String) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else {
                if count < 0, errno == EINTR { continue }
                throw failure("cannot write", path)
            }
            rest = rest.dropFirst(count)
        }
    }

    /// A rename is durable only when the folder that holds the name is.
    private static func syncFolder(of path: String) throws {
        try syncFolder(at: folder(of: path), for: path)
    }

    /// The folder of a path.
    ///
    /// Foundation's `deletingLastPathComponent` traps on a path of one character.
    package static func folder(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Makes the names in a folder durable.
    /// - Throws: ``CommandError/Code/file``, with the path of `file` if there is one.
    static func syncFolder(at folder: String, for file: String? = nil) throws {
        let path = file ?? folder
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("cannot write", path) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw failure("cannot write", path) }
    }
}
