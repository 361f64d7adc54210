import CPosix
import Crypto
import Foundation
import HeraldModel

/// Copies files and computes their digests, piece by piece, because a store may be larger than the memory.
enum FileCopy {
    /// Size and digest of a file.
    struct Content: Hashable {
        /// In bytes.
        var size = 0
        /// SHA-256, in hexadecimal.
        var sha256 = ""
    }

    /// A regular file that is open for reading.
    final class Source {
        let path: String
        fileprivate let descriptor: CInt

        /// - Throws: ``CommandError/Code/file``.
        init(_ path: String) throws {
            self.path = path
            // Not blocking, because the path may be a pipe.
            descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
            guard descriptor >= 0 else {
                if errno == ELOOP { throw CommandError(.file, "\(path) is a link: replace it by the file itself") }
                throw SafeFile.failure("cannot read", path)
            }
            var status = herald_status()
            guard herald_status_of_descriptor(descriptor, &status) == 0 else {
                throw SafeFile.failure("cannot read", path)
            }
            guard mode_t(status.mode) & S_IFMT == S_IFREG else {
                throw CommandError(.file, "\(path) is not a regular file: move it away")
            }
        }

        deinit {
            close(descriptor)
        }
    }

    private static let pieceBytes = 1 << 20

    /// Copies a regular file to a path at which there is none, and syncs the copy.
    /// - Returns: What was copied.
    /// - Throws: ``CommandError/Code/file``.
    static func copy(_ source: Source, to target: String, mode: mode_t) throws -> Content {
        let descriptor = open(target, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)
        guard descriptor >= 0 else { throw SafeFile.failure("cannot write", target) }
        defer { close(descriptor) }
        // The umask may have taken bits away.
        guard fchmod(descriptor, mode) == 0 else { throw SafeFile.failure("cannot write", target) }
        let content = try read(source) { try SafeFile.writeAll($0, to: descriptor, target) }
        guard fsync(descriptor) == 0 else { throw SafeFile.failure("cannot write", target) }
        return content
    }

    /// Size and digest of a regular file.
    /// - Throws: ``CommandError/Code/file``.
    static func content(of path: String) throws -> Content {
        try read(Source(path)) { _ in }
    }

    /// Makes a file's mode and content durable.
    static func settle(_ path: String, mode: mode_t) throws {
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { throw SafeFile.failure("cannot open", path) }
        defer { close(descriptor) }
        guard fchmod(descriptor, mode) == 0, fsync(descriptor) == 0 else {
            throw SafeFile.failure("cannot write", path)
        }
    }

    private static func read(_ source: Source, _ body: ([UInt8]) throws -> Void) throws -> Content {
        var digest = SHA256()
        var content = Content()
        while true {
            let piece = try [UInt8](unsafeUninitializedCapacity: pieceBytes) { buffer, count in
                let got = Foundation.read(source.descriptor, buffer.baseAddress, buffer.count)
                guard got >= 0 else { throw SafeFile.failure("cannot read", source.path) }
                count = got
            }
            if piece.isEmpty { break }
            digest.update(data: piece)
            content.size += piece.count
            try body(piece)
        }
        content.sha256 = Hex.text(digest.finalize())
        return content
    }
}
