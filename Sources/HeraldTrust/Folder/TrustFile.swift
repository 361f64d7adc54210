// `stat` is a declaration of whichever of these modules the compiler has read first.
import CoreFoundation
import Foundation

#if canImport(CDispatch)
import CDispatch
#endif

/// Files of the trust folder: read only if nobody else can have read or written them, and written so that a reader sees
/// the old content or the new, never half of one, also after loss of power.
package enum TrustFile {
    /// Who may see a file.
    package enum Secrecy: Sendable {
        /// Its owner alone: mode 0600.
        case secret
        /// Everybody may read it; its owner alone may write it: mode 0644.
        case open

        fileprivate var mode: mode_t { self == .secret ? 0o600 : 0o644 }
        fileprivate var forbiddenBits: mode_t { self == .secret ? 0o077 : 0o022 }
    }

    /// What changes when a file is replaced or written to.
    struct Stamp: Hashable, Sendable {
        var device: UInt64
        var inode: UInt64
        var size: Int64
        var seconds: Int64
        var nanoseconds: Int64
    }

    /// The longest file that is read, in bytes.
    package static let maximumBytes = 64 << 20

    package static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    /// - Returns: nil if there is no such file.
    static func stamp(_ path: String) -> Stamp? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        #if canImport(Darwin)
        let changed = status.st_mtimespec
        #else
        let changed = status.st_mtim
        #endif
        return Stamp(
            device: UInt64(truncatingIfNeeded: status.st_dev),
            inode: UInt64(truncatingIfNeeded: status.st_ino),
            size: Int64(status.st_size),
            seconds: Int64(changed.tv_sec),
            nanoseconds: Int64(changed.tv_nsec)
        )
    }

    /// Makes a folder of mode 0700, or checks that one is such.
    /// - Throws: ``TrustError`` whose message says how to mend it.
    package static func makePrivateFolder(_ path: String) throws {
        if mkdir(path, 0o700) == 0 { return }
        guard errno == EEXIST else { throw failure(.unwritable, "cannot make the folder \(path)") }
        try checkPrivateFolder(path)
    }

    /// Checks that a folder can be entered by its owner alone, and that the owner is us.
    package static func checkPrivateFolder(_ path: String) throws {
        let descriptor = Foundation.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else {
            let code: TrustError.Code = errno == ENOENT ? .folderMissing : .unreadable
            throw failure(code, "cannot open the folder \(path)")
        }
        defer { close(descriptor) }
        try check(descriptor, path, forbidden: 0o077, mend: "chmod 700 \(path)")
    }

    /// Reads a whole file.
    ///
    /// A link is not followed.
    /// - Throws: ``TrustError/Code/missing``, ``TrustError/Code/exposed``, ``TrustError/Code/foreignOwner``,
    ///   ``TrustError/Code/unreadable``.
    package static func read(_ path: String, _ secrecy: Secrecy) throws -> [UInt8] {
        // Not blocking: what stands there might be a pipe.
        let descriptor = Foundation.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            switch errno {
            case ENOENT: throw TrustError(.missing, "\(path) is missing: restore it from a backup")
            case ELOOP: throw TrustError(.unreadable, "\(path) is a link: put the file itself in its place")
            default: throw failure(.unreadable, "cannot read \(path)")
            }
        }
        defer { close(descriptor) }
        let mode = secrecy == .secret ? "600" : "644"
        let size = try check(descriptor, path, forbidden: secrecy.forbiddenBits, mend: "chmod \(mode) \(path)")
        guard size <= maximumBytes else { throw TrustError(.damaged, "\(path) is larger than \(maximumBytes) bytes") }
        return try readAll(descriptor, path)
    }

    /// Writes a whole file: a new one beside it, made durable, takes its name, and the folder is made durable.
    /// - Throws: ``TrustError/Code/unwritable``; the file is then as it was.
    package static func write(_ bytes: [UInt8], to path: String, _ secrecy: Secrecy) throws {
        let draft = "\(path).\(getpid()).new"
        unlink(draft)
        let descriptor = Foundation.open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, secrecy.mode)
        guard descriptor >= 0 else { throw failure(.unwritable, "cannot write \(path)") }
        do {
            defer { close(descriptor) }
            // The umask may have taken bits away.
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

    /// Adds bytes to the end of a file, which is made if it is not there, and makes them durable.
    ///
    /// With `keep`, what is beyond that many bytes is cut off first.
    static func append(_ bytes: [UInt8], to path: String, keep: Int?) throws {
        let isNew = !exists(path)
        let descriptor = Foundation.open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure(.unwritable, "cannot write \(path)") }
        defer { close(descriptor) }
        try check(descriptor, path, forbidden: 0o077, mend: "chmod 600 \(path)")
        if let keep, ftruncate(descriptor, off_t(keep)) != 0 { throw failure(.unwritable, "cannot write \(path)") }
        try writeAll(bytes, to: descriptor, path)
        guard fsync(descriptor) == 0 else { throw failure(.unwritable, "cannot write \(path)") }
        if isNew { try syncFolder(of: path) }
    }

    static func failure(_ code: TrustError.Code, _ what: String) -> TrustError {
        TrustError(code, "\(what): \(String(cString: strerror(errno)))")
    }

    /// Checks kind, owner and mode of what is open, so that it is the thing that is then read.
    @discardableResult
    private static func check(_ descriptor: CInt, _ path: String, forbidden: mode_t, mend: String) throws -> Int {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure(.unreadable, "cannot read \(path)") }
        let kind = status.st_mode & S_IFMT
        guard kind == S_IFREG || kind == S_IFDIR else {
            throw TrustError(.unreadable, "\(path) is not a file: put the file itself in its place")
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
            throw TrustError(.exposed, "\(path) is open to others (mode 0\(mode)): run `\(mend)`")
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

    /// A rename is durable only when the folder that holds the name is.
    private static func syncFolder(of path: String) throws {
        let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        let descriptor = Foundation.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure(.unwritable, "cannot write \(path)") }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw failure(.unwritable, "cannot write \(path)") }
    }
}
