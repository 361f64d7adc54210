import CPosix
import Foundation
import HeraldDevice

/// Durable files of the agent's folder; a reader sees either the old or the new content.
package enum AgentFile {
    /// Creates a folder (0700) with a unique name in `parent`.
    /// - Returns: Its path; nil on failure.
    package static func makeTemporaryFolder(in parent: String, named name: String) -> String? {
        // mkdtemp(3) replaces the last six characters.
        var template = Array("\(parent)/\(name).\(String(repeating: "X", count: 6))".utf8CString)
        return template.withUnsafeMutableBufferPointer { buffer in
            buffer.baseAddress.flatMap { mkdtemp($0) }.map { String(cString: $0) }
        }
    }

    /// Replaces a file by renaming a complete new one.
    static func replace(_ path: String, with bytes: [UInt8]) throws {
        let draft = path + ".new"
        unlink(draft)
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure("cannot write", path) }
        do {
            defer { close(descriptor) }
            try write(bytes, to: descriptor, path)
            guard fsync(descriptor) == 0 else { throw failure("cannot write", path) }
        } catch {
            unlink(draft)
            throw error
        }
        guard rename(draft, path) == 0 else { throw failure("cannot write", path) }
        try syncFolder((path as NSString).deletingLastPathComponent)
    }

    /// Keeps bytes that this version cannot read in a file of their own beside `path`.
    /// - Returns: The path of that file.
    static func setAside(_ bytes: [UInt8], of path: String) throws -> String {
        let paths = (1...).lazy.map { number in "\(path).unreadable" + (number == 1 ? "" : "-\(number)") }
        let free = paths.first { !FileManager.default.fileExists(atPath: $0) } ?? path + ".unreadable"
        try replace(free, with: bytes)
        return free
    }

    /// Reads a whole file; nil if there is none.
    static func read(_ path: String, limit: Int) throws -> [UInt8]? {
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        do {
            return try BundleFile.read(path, limit: limit)
        } catch let error as BundleError {
            throw DeviceError(.badFolder, error.description)
        }
    }

    static func write(_ bytes: [UInt8], to descriptor: CInt, _ path: String) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw failure("cannot write", path) }
            rest = rest.dropFirst(count)
        }
    }

    /// Syncs a folder: a rename is durable only then.
    static func syncFolder(_ path: String) throws {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("cannot write", path) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw failure("cannot write", path) }
    }

    /// Creates a folder that only its owner can enter, if it is missing.
    static func makeFolder(_ path: String) throws {
        if mkdir(path, 0o700) == 0 { return }
        guard errno == EEXIST else { throw failure("cannot create the folder", path) }
        var status = herald_status()
        guard herald_status(path, 1, &status) == 0, status.mode & S_IFMT == S_IFDIR else {
            throw DeviceError(.badFolder, "\(path) is not a folder")
        }
        guard status.mode & 0o077 == 0 || chmod(path, 0o700) == 0 else {
            throw DeviceError(.badFolder, "\(path) is accessible to others: give it the mode 0700")
        }
    }

    /// The error of the last system call.
    static func failure(_ what: String, _ path: String) -> DeviceError {
        DeviceError(.badFolder, "\(what) \(path): \(String(cString: strerror(errno)))")
    }
}
