// `stat` is a declaration of whichever of these modules the compiler has read first.
import CoreFoundation
import Foundation

#if canImport(CDispatch)
import CDispatch
#endif

/// Files of a bundle as bytes; only plain files, and never more than was asked for.
enum BundleFile {
    /// The whole file, or an error if it is longer than `limit`.
    static func read(_ path: String, limit: Int) throws -> [UInt8] {
        let (bytes, size) = try readPrefix(path, limit: limit)
        guard size <= limit else { throw BundleError(path, "is larger than \(limit) bytes") }
        return bytes
    }

    /// The first bytes of the file, `limit` at most, and the size of the whole.
    static func readPrefix(_ path: String, limit: Int) throws -> (bytes: [UInt8], size: Int) {
        // Opening a pipe would wait for somebody who writes into it.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw failure(path) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure(path) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw BundleError(path, "is not a file") }
        let size = Int(status.st_size)
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

    /// The names in a folder, sorted; hidden ones are left out.
    static func names(in folder: String) throws -> [String] {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: folder).filter { !$0.hasPrefix(".") }.sorted()
        } catch {
            throw BundleError(folder, "cannot be read: it must be a folder that is there and open to you")
        }
    }

    /// Whether there is a folder.
    static func isFolder(_ path: String) -> Bool {
        var isFolder: ObjCBool = false
        return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) && isFolder.boolValue
    }

    /// Whether there is a plain file, and no link to one.
    static func isPlainFile(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    private static func failure(_ path: String) -> BundleError {
        BundleError(path, "cannot be read: \(String(cString: strerror(errno)))")
    }
}
