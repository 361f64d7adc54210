import Foundation

/// Files of which a reader sees either the old or the new content, never half of one, and which survive loss of power.
enum SafeFile {
    /// The longest file that is read into memory, in bytes: far more than any certificate or configuration has.
    static let maximumBytes = 1 << 20

    /// Writes a whole file by renaming a complete one, which never had another mode, into its place.
    ///
    /// Throws ``CommandError/Code/file``.
    static func write(_ bytes: [UInt8], to path: String, mode: mode_t) throws {
        let draft = "\(path).\(getpid()).new"
        unlink(draft)
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)
        guard descriptor >= 0 else { throw failure("cannot write", path) }
        do {
            defer { close(descriptor) }
            // The umask may have taken bits away.
            guard fchmod(descriptor, mode) == 0 else { throw failure("cannot write", path) }
            try writeAll(bytes, to: descriptor, path)
            guard fsync(descriptor) == 0 else { throw failure("cannot write", path) }
        } catch {
            unlink(draft)
            throw error
        }
        guard rename(draft, path) == 0 else {
            let error = failure("cannot write", path)
            unlink(draft)
            throw error
        }
        try syncFolder(of: path)
    }

    /// Reads a whole file of at most ``maximumBytes``.
    /// - Throws: ``CommandError/Code/file``.
    static func read(_ path: String) throws -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("cannot read", path) }
        defer { close(descriptor) }
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
                throw CommandError(.file, "cannot read \(path): it is larger than \(maximumBytes) bytes")
            }
        }
    }

    /// What the system said about the last call, as an error.
    static func failure(_ what: String, _ path: String) -> CommandError {
        CommandError(.file, "\(what) \(path): \(String(cString: strerror(errno)))")
    }

    private static func writeAll(_ bytes: [UInt8], to descriptor: CInt, _ path: String) throws {
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
        let folder = (path as NSString).deletingLastPathComponent
        let descriptor = open(folder.isEmpty ? "." : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("cannot write", path) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw failure("cannot write", path) }
    }
}
