import CPosix
import Foundation

/// Copies a bundle: only plain files and folders, within limits.
struct BundleCopy {
    /// The deepest folder that is copied.
    private static let maximumDepth = 32

    private let limits: BundleLimits
    private var entries = 0
    private var bytes = 0

    init(limits: BundleLimits) {
        self.limits = limits
    }

    /// Copies a folder durably to a new path.
    /// - Throws: ``BundleError``, or ``DeviceError/Code/badFolder``.
    mutating func copy(_ source: String, to target: String) throws {
        try copyFolder(source, target, depth: 1)
    }

    private mutating func copyFolder(_ source: String, _ target: String, depth: Int) throws {
        guard depth <= Self.maximumDepth else { throw BundleError(source, "is nested too deeply for a bundle") }
        guard mkdir(target, 0o700) == 0 else { throw AgentFile.failure("cannot write", target) }
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
            var status = herald_status()
            guard herald_status(path, 0, &status) == 0 else { throw BundleError(path, "cannot be read") }
            switch status.mode & S_IFMT {
            case S_IFDIR: try copyFolder(path, target + "/" + name, depth: depth + 1)
            case S_IFREG: try copyFile(path, target + "/" + name, isProgram: status.mode & S_IXUSR != 0)
            case S_IFLNK: throw BundleError(path, "is a link: put the file itself into the bundle")
            default: throw BundleError(path, "is neither a file nor a folder")
            }
        }
        try AgentFile.syncFolder(target)
    }

    private mutating func copyFile(_ source: String, _ target: String, isProgram: Bool) throws {
        let input = open(source, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard input >= 0 else { throw BundleError(source, "cannot be read: \(String(cString: strerror(errno)))") }
        defer { close(input) }
        let output = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, isProgram ? 0o700 : 0o600)
        guard output >= 0 else { throw AgentFile.failure("cannot write", target) }
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
            try AgentFile.write(chunk, to: output, target)
        }
        guard fsync(output) == 0 else { throw AgentFile.failure("cannot write", target) }
    }
}
