import CPosix
import Foundation

/// Reads plain files of a bundle, within a limit.
enum BundleFile {
    /// Reads a whole file of at most `limit` bytes.
    static func read(_ path: String, limit: Int) throws -> [UInt8] {
        let (bytes, size) = try readPrefix(path, limit: limit)
        guard size <= limit else { throw BundleError(path, "is larger than \(limit) bytes") }
        return bytes
    }

    /// Reads at most `limit` bytes from the start of a file, and its size.
    static func readPrefix(_ path: String, limit: Int) throws -> (bytes: [UInt8], size: Int) {
        // Without O_NONBLOCK, opening a named pipe would wait for a writer.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw failure(path) }
        defer { close(descriptor) }
        var status = herald_status()
        guard herald_status_of_descriptor(descriptor, &status) == 0 else { throw failure(path) }
        guard status.mode & S_IFMT == S_IFREG else { throw BundleError(path, "is not a file") }
        let size = Int(status.size)
        var bytes: [UInt8] = []
        while bytes.count < min(size, limit) {
            let room = min(size, limit) - bytes.count
            let chunk = try [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
                let got = Foundation.read(descriptor, buffer.baseAddress, room)
                guard got >= 0 else { throw failure(path) }
                count = got
            }
            if chunk.isEmpty { break }
            bytes += chunk
        }
        return (bytes, size)
    }

    /// Lists a folder, sorted, without hidden entries.
    static func names(in folder: String) throws -> [String] {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: folder).filter { !$0.hasPrefix(".") }.sorted()
        } catch {
            throw BundleError(folder, "cannot be read: it must be an existing folder that you can read")
        }
    }

    static func isFolder(_ path: String) -> Bool {
        var isFolder: ObjCBool = false
        return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) && isFolder.boolValue
    }

    /// Whether a path is a plain file, not a link.
    static func isPlainFile(_ path: String) -> Bool {
        var status = herald_status()
        return herald_status(path, 0, &status) == 0 && status.mode & S_IFMT == S_IFREG
    }

    private static func failure(_ path: String) -> BundleError {
        BundleError(path, "cannot be read: \(String(cString: strerror(errno)))")
    }
}
