import Foundation

/// A service that still runs on a data folder that was deleted or moved.
///
/// The lock of such a service is no longer at the folder's path. Only Linux tells it: `/proc/net/unix` lists sockets by the
/// path at which they were bound, and `/proc/PID/fd` shows the open files of a process.
struct DisplacedService {
    /// The path at which the folder was.
    let path: String
    /// The service's process; nil if the caller may not see its open files.
    let process: Int32?

    /// Finds a service that was started on this path, and does not work on the folder that is there now.
    static func find(_ folder: DataFolder) -> DisplacedService? {
        let absolute = URL(fileURLWithPath: folder.path).standardizedFileURL
        let parent = absolute.deletingLastPathComponent().resolvingSymlinksInPath()
        let paths = Set([absolute.path, parent.appendingPathComponent(absolute.lastPathComponent).path])
            .map(DataFolder.init)
        // Linux writes the table in pieces: while sockets come and go, one read may miss a row.
        let sockets = Set((0..<3).flatMap { _ in boundSockets(at: Set(paths.map(\.controlSocketPath))) })
        let files = Set(sockets.map { "socket:[\($0)]" } + paths.map { "\($0.lockPath) (deleted)" })
        let process = ProcessFiles.process(holding: files)
        guard process != nil || !sockets.isEmpty else { return nil }
        return DisplacedService(path: folder.path, process: process)
    }

    var error: CommandError {
        let name = process.map { "process \($0)" } ?? "a service"
        return CommandError(
            .folderInUse,
            "\(name) still runs on the folder that was at \(path) before: stop it, and repeat the restore"
        )
    }

    /// The inodes of the Unix sockets that were bound at a path.
    private static func boundSockets(at paths: Set<String>) -> [String] {
        // Num RefCount Protocol Flags Type St Inode Path
        // Names of sockets need not be UTF-8.
        ProcessFiles.text("/proc/net/unix").split(separator: "\n").compactMap { line in
            let fields = line.split(separator: " ", maxSplits: 7)
            return fields.count == 8 && paths.contains(String(fields[7])) ? String(fields[6]) : nil
        }
    }
}
