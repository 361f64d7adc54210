// `stat` is a declaration of whichever of these modules the compiler has read first.
import CoreFoundation
import Foundation

#if canImport(CDispatch)
import CDispatch
#endif

/// Files of the agent's folder, of which a reader sees either the old or the new content, and which survive loss of power.
package enum AgentFile {
    /// Makes a folder (0700) with a name that nothing else has, in `place`.
    /// - Returns: Its path; nil if there can be none.
    package static func makeTemporaryFolder(in place: String, named name: String) -> String? {
        // mkdtemp(3) puts letters of its own in place of the last six.
        var template = Array("\(place)/\(name).XXXXXX".utf8CString)
        return template.withUnsafeMutableBufferPointer { buffer in
            buffer.baseAddress.flatMap { mkdtemp($0) }.map { String(cString: $0) }
        }
    }

    /// Writes a whole file by renaming a complete one into its place.
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

    /// A rename is durable only when the folder that holds the name is.
    static func syncFolder(_ path: String) throws {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("cannot write", path) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw failure("cannot write", path) }
    }

    /// Makes a folder that only its owner may enter, if it is not there.
    static func makeFolder(_ path: String) throws {
        if mkdir(path, 0o700) == 0 { return }
        guard errno == EEXIST else { throw failure("cannot make the folder", path) }
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
            throw DeviceError(.badFolder, "\(path) is not a folder")
        }
        guard status.st_mode & 0o077 == 0 || chmod(path, 0o700) == 0 else {
            throw DeviceError(.badFolder, "\(path) is open to others: give it the mode 0700")
        }
    }

    /// What the system said about the last call.
    static func failure(_ what: String, _ path: String) -> DeviceError {
        DeviceError(.badFolder, "\(what) \(path): \(String(cString: strerror(errno)))")
    }
}
