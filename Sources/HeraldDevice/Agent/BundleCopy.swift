// `stat` is a declaration of whichever of these modules the compiler has read first.
import CoreFoundation
import Foundation

#if canImport(CDispatch)
import CDispatch
#endif

/// Copies a bundle: plain files and folders only, and no more of them than was agreed.
struct BundleCopy {
    /// The deepest folder that is copied.
    private static let maximumDepth = 32

    private let limits: BundleLimits
    private var entries = 0
    private var bytes = 0

    init(limits: BundleLimits) {
        self.limits = limits
    }

    /// Copies a folder to a place where there is nothing, durably.
    /// - Throws: ``BundleError``, or ``DeviceError/Code/badFolder``.
    mutating func copy(_ source: String, to place: String) throws {
        try copyFolder(source, place, depth: 1)
    }

    private mutating func copyFolder(_ source: String, _ place: String, depth: Int) throws {
        guard depth <= Self.maximumDepth else { throw BundleError(source, "is nested too deeply for a bundle") }
        guard mkdir(place, 0o700) == 0 else { throw AgentFile.failure("cannot write", place) }
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: source)
        } catch {
            throw BundleError(source, "cannot be read: it must be a folder that is open to you")
        }
        for name in names {
            entries += 1
            guard entries <= limits.entries else {
                throw BundleError(source, "has more than \(limits.entries) files: name the folder of the app itself")
            }
            let path = source + "/" + name
            var status = stat()
            guard lstat(path, &status) == 0 else { throw BundleError(path, "cannot be read") }
            switch status.st_mode & S_IFMT {
            case S_IFDIR: try copyFolder(path, place + "/" + name, depth: depth + 1)
            case S_IFREG: try copyFile(path, place + "/" + name, isProgram: status.st_mode & S_IXUSR != 0)
            case S_IFLNK: throw BundleError(path, "is a link: put the file itself into the bundle")
            default: throw BundleError(path, "is neither a file nor a folder")
            }
        }
        try AgentFile.syncFolder(place)
    }

    private mutating func copyFile(_ source: String, _ place: String, isProgram: Bool) throws {
        let input = open(source, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard input >= 0 else { throw BundleError(source, "cannot be read: \(String(cString: strerror(errno)))") }
        defer { close(input) }
        let output = open(place, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, isProgram ? 0o700 : 0o600)
        guard output >= 0 else { throw AgentFile.failure("cannot write", place) }
        defer { close(output) }
        while true {
            let chunk = try [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
                let got = read(input, buffer.baseAddress, buffer.count)
                guard got >= 0 else { throw BundleError(source, "cannot be read: \(String(cString: strerror(errno)))") }
                count = got
            }
            if chunk.isEmpty { break }
            bytes += chunk.count
            guard bytes <= limits.totalBytes else {
                throw BundleError(source, "makes the bundle larger than \(limits.totalBytes) bytes")
            }
            try AgentFile.write(chunk, to: output, place)
        }
        guard fsync(output) == 0 else { throw AgentFile.failure("cannot write", place) }
    }
}
