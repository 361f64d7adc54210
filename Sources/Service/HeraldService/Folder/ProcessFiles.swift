import Foundation

/// The files in which Linux tells of processes (proc(5)); elsewhere there are none.
enum ProcessFiles {
    /// The most that is read of a file, in bytes: some 400,000 connections.
    private static let longestText = 64 << 20

    /// The text of a file, of which Foundation reads 4 KiB only; empty if it cannot be read.
    static func text(_ path: String) -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        while true {
            let piece = [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
                count = max(0, read(descriptor, buffer.baseAddress, buffer.count))
            }
            guard !piece.isEmpty, bytes.count < longestText else { return String(decoding: bytes, as: UTF8.self) }
            bytes += piece
        }
    }

    /// The first process that has one of these files open, as the links in its folder `fd` name them; nil if there is none that
    /// this user may see.
    static func process(holding files: Set<String>) -> Int32? {
        let names = { (folder: String) in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] }
        return names("/proc").compactMap { Int32($0) }.sorted().first { process in
            let folder = "/proc/\(process)/fd"
            return names(folder).contains { name in
                let file = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(name)")
                return files.contains(file ?? "")
            }
        }
    }
}
