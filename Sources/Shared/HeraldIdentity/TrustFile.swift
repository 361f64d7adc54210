// `stat` comes from the module that the compiler reads first.
import CoreFoundation
import Foundation

#if canImport(CDispatch)
import CDispatch
#endif

/// Reads and writes files of certificates and keys.
///
/// A file is read only if its owner and mode keep others out. Writes are atomic, also when the power fails.
package enum TrustFile {
    /// The users who may read a file.
    package enum Secrecy: Sendable {
        /// The owner only: mode 0600.
        case secret
        /// Everyone; only the owner may write: mode 0644.
        case open

        fileprivate var mode: mode_t { self == .secret ? 0o600 : 0o644 }
        fileprivate var forbiddenBits: mode_t { self == .secret ? 0o077 : 0o022 }
    }

    /// A file's identity, size and times.
    ///
    /// They change when the file is written or replaced, or its owner or mode changes.
    package struct Stamp: Hashable, Sendable {
        package struct Time: Hashable, Sendable {
            let seconds: Int
            let nanoseconds: Int

            init(_ time: timespec) {
                seconds = time.tv_sec
                nanoseconds = time.tv_nsec
            }
        }

        let device: UInt64
        let inode: UInt64
        let size: Int64
        let modified: Time
        let changed: Time
    }

    /// The longest file that is read, in bytes.
    package static let maximumBytes = 64 << 20

    package static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    /// - Returns: nil if there is no such file.
    /// - Throws: ``TrustError/Code/unreadable``.
    package static func stamp(_ path: String) throws -> Stamp? {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            guard errno == ENOENT else { throw failure(.unreadable, "cannot read \(path)") }
            return nil
        }
        #if canImport(Darwin)
        let (modified, changed) = (status.st_mtimespec, status.st_ctimespec)
        #else
        let (modified, changed) = (status.st_mtim, status.st_ctim)
        #endif
        return Stamp(
            device: UInt64(truncatingIfNeeded: status.st_dev),
            inode: UInt64(truncatingIfNeeded: status.st_ino),
            size: Int64(status.st_size),
            modified: Stamp.Time(modified),
            changed: Stamp.Time(changed)
        )
    }

    /// Checks owner and mode of a secret file without opening it.
    ///
    /// SQLite's locks end when its process closes any descriptor of the file.
    /// - Returns: The file's size.
    package static func checkSecret(_ path: String) throws -> Int {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            if errno == ENOENT { throw missing(path) }
            throw failure(.unreadable, "cannot read \(path)")
        }
        return try check(status, path, forbidden: Secrecy.secret.forbiddenBits, remedy: "chmod 600 \(path)")
    }

    /// Creates an empty secret file.
    /// - Throws: ``TrustError/Code/unwritable``, also if the file exists.
    package static func createSecret(_ path: String) throws {
        let descriptor = Foundation.open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure(.unwritable, "cannot write \(path)") }
        close(descriptor)
        try syncFolder(of: path)
    }

    private static func missing(_ path: String) -> TrustError {
        TrustError(
            .missing,
            "\(path) is missing: \(isWrittenAgain(path) ? "restart the service, which writes it again" : TrustError.copyFromBackup)"
        )
    }

    /// The remedy for a damaged file of the trust folder.
    package static func remedy(forDamaged path: String) -> String {
        isWrittenAgain(path) ? "remove it, and restart the service, which writes it again" : TrustError.copyFromBackup
    }

    /// Whether a start of the service writes a file that is missing.
    private static func isWrittenAgain(_ path: String) -> Bool {
        path.hasSuffix("/ca.pem") || path.hasSuffix("/server.pem")
    }

    /// Creates a folder of mode 0700, or checks the mode of an existing one.
    /// - Throws: ``TrustError`` with the remedy.
    package static func makePrivateFolder(_ path: String) throws {
        if mkdir(path, 0o700) == 0 { return }
        guard errno == EEXIST else { throw failure(.unwritable, "cannot create the folder \(path)") }
        try checkPrivateFolder(path)
    }

    /// Checks that only the owner can enter a folder, and that the owner is this process's user.
    package static func checkPrivateFolder(_ path: String) throws {
        let descriptor = Foundation.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else {
            let code: TrustError.Code = errno == ENOENT ? .folderMissing : .unreadable
            throw failure(code, "cannot open the folder \(path)")
        }
        defer { close(descriptor) }
        try check(descriptor, path, forbidden: 0o077, remedy: "chmod 700 \(path)")
    }

    /// Reads a whole file, without following a link.
    /// - Throws: ``TrustError/Code/missing``, ``TrustError/Code/exposed``, ``TrustError/Code/foreignOwner``,
    ///   ``TrustError/Code/unreadable``.
    package static func read(_ path: String, _ secrecy: Secrecy) throws -> [UInt8] {
        // Not blocking, because the path may be a pipe.
        let descriptor = Foundation.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            switch errno {
            case ENOENT: throw missing(path)
            case ELOOP: throw TrustError(.unreadable, "\(path) is a link: replace it by the file itself")
            default: throw failure(.unreadable, "cannot read \(path)")
            }
        }
        defer { close(descriptor) }
        let mode = secrecy == .secret ? "600" : "644"
        let size = try check(descriptor, path, forbidden: secrecy.forbiddenBits, remedy: "chmod \(mode) \(path)")
        guard size <= maximumBytes else { throw TrustError(.damaged, "\(path) is larger than \(maximumBytes) bytes") }
        return try readAll(descriptor, path)
    }

    /// Writes a whole file: writes and syncs a new file, renames it, and syncs the folder.
    /// - Throws: ``TrustError/Code/unwritable``; the file is then unchanged.
    package static func write(_ bytes: [UInt8], to path: String, _ secrecy: Secrecy) throws {
        let draft = "\(path).\(getpid()).new"
        unlink(draft)
        let descriptor = Foundation.open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, secrecy.mode)
        guard descriptor >= 0 else { throw failure(.unwritable, "cannot write \(path)") }
        do {
            defer { close(descriptor) }
            // The umask may have cleared bits.
            guard fchmod(descriptor, secrecy.mode) == 0 else { throw failure(.unwritable, "cannot write \(path)") }
            try writeAll(bytes, to: descriptor, path)
            guard fsync(descriptor) == 0 else { throw failure(.unwritable, "cannot write \(path)") }
            guard rename(draft, path) == 0 else { throw failure(.unwritable, "cannot write \(path)") }
        } catch {
            unlink(draft)
            throw error
        }
        try syncFolder(of: path)
    }

    package static func failure(_ code: TrustError.Code, _ action: String) -> TrustError {
        TrustError(code, "\(action): \(String(cString: strerror(errno)))")
    }

    /// Checks kind, owner and mode of the open file, so that the checked file is the one that is read.
    @discardableResult
    private static func check(_ descriptor: CInt, _ path: String, forbidden: mode_t, remedy: String) throws -> Int {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure(.unreadable, "cannot read \(path)") }
        return try check(status, path, forbidden: forbidden, remedy: remedy)
    }

    private static func check(_ status: stat, _ path: String, forbidden: mode_t, remedy: String) throws -> Int {
        let kind = status.st_mode & S_IFMT
        guard kind == S_IFREG || kind == S_IFDIR else {
            throw TrustError(.unreadable, "\(path) is not a regular file: replace it by one")
        }
        guard status.st_uid == geteuid() || status.st_uid == 0 else {
            throw TrustError(
                .foreignOwner,
                "\(path) belongs to user \(status.st_uid), and Herald runs as user \(geteuid()): run it as the owner, "
                    + "or run `chown \(geteuid()) \(path)`"
            )
        }
        guard status.st_mode & forbidden == 0 else {
            let mode = String(status.st_mode & 0o777, radix: 8)
            throw TrustError(.exposed, "\(path) is open to others (mode 0\(mode)): run `\(remedy)`")
        }
        return Int(status.st_size)
    }

    private static func readAll(_ descriptor: CInt, _ path: String) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            let chunk = try [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
                let got = Foundation.read(descriptor, buffer.baseAddress, buffer.count)
                guard got >= 0 else { throw failure(.unreadable, "cannot read \(path)") }
                count = got
            }
            if chunk.isEmpty { return bytes }
            bytes += chunk
            guard bytes.count <= maximumBytes else {
                throw TrustError(.damaged, "\(path) is larger than \(maximumBytes) bytes")
            }
        }
    }

    private static func writeAll(_ bytes: [UInt8], to descriptor: CInt, _ path: String) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else {
                if count < 0, errno == EINTR { continue }
                throw failure(.unwritable, "cannot write \(path)")
            }
            rest = rest.dropFirst(count)
        }
    }

    /// Syncs the folder of a path, which makes a rename durable.
    private static func syncFolder(of path: String) throws {
        let folder =
            path.utf8.lastIndex(of: UInt8(ascii: "/")).map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        let descriptor = Foundation.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure(.unwritable, "cannot write \(path)") }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw failure(.unwritable, "cannot write \(path)") }
    }
}
