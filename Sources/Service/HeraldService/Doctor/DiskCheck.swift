import HeraldModel
import HeraldStores

/// Judges the disk of a data folder.
struct DiskCheck {
    /// Free space below which there is a warning, in bytes: a journal of the default size has room.
    private static let littleSpace = 1 << 30
    /// Free files below which there is a warning.
    private static let fewFiles = 1000
    /// The longest sync without a warning: a provider's answer for an absent device waits for one.
    private static let slowSync = Duration.milliseconds(100)
    /// No disk syncs in less: the request does not reach it.
    private static let quickSync = Duration.microseconds(5)
    private static let networks: Set<String> = [
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "lustre", "fuse.sshfs", "fuse.glusterfs",
        "virtiofs", "afs",
    ]

    let path: String
    /// In bytes; nil if the system does not say.
    var freeBytes: Int?
    /// Files that can be made; nil if the file system has no limit.
    var freeFiles: Int?
    /// The file system's kind, like `ext4`; nil if it is unknown.
    var kind: String?
    /// The median time of a sync; nil if nothing can be written, then with the reason.
    var sync: Duration?
    var failure: String?

    var findings: [DoctorFinding] {
        [space, files, fileSystem, syncing].compactMap(\.self)
    }

    private var space: DoctorFinding? {
        guard let freeBytes else { return nil }
        let text = "\(freeBytes >> 20) MiB are free at \(path)"
        if freeBytes < SQLiteStoreConfiguration().minimumFreeSpace {
            return .fail("disk", text, "free some space: below 64 MiB the service refuses notifications")
        }
        return freeBytes < Self.littleSpace
            ? .warn("disk", text, "free some space: the journal alone may take 512 MiB (journal-size)")
            : .ok("disk", text)
    }

    private var files: DoctorFinding? {
        guard let freeFiles, freeFiles < Self.fewFiles else { return nil }
        return .warn(
            "disk",
            "\(freeFiles) more files can be made at \(path)",
            "remove files: the disk has no free inodes"
        )
    }

    private var fileSystem: DoctorFinding? {
        guard let kind else { return nil }
        if kind == "tmpfs" || kind == "ramfs" {
            return .warn(
                "disk",
                "\(path) is in memory (\(kind))",
                "choose a folder on a disk: a restart loses everything"
            )
        }
        return Self.networks.contains(kind)
            ? .warn(
                "disk",
                "\(path) is on a network (\(kind))",
                "choose a local disk: SQLite needs its locks and syncs"
            )
            : .ok("disk", "the file system is \(kind)")
    }

    private var syncing: DoctorFinding? {
        guard let sync else {
            return .fail(
                "disk",
                "cannot write at \(path) (\(failure ?? "no reason given"))",
                "check owner, mode and disk"
            )
        }
        let text = "a sync takes \(DiskCheck.text(sync))"
        if sync > Self.slowSync {
            return .warn("disk", text, "choose a faster disk: the answer for each absent device waits for a sync")
        }
        // A file system in memory has its own line.
        return sync < Self.quickSync && kind != "tmpfs"
            ? .warn(
                "disk",
                text,
                "no disk syncs as fast as this: check that syncs reach it; see eatmydata, nobarrier, nosync"
            )
            : .ok("disk", text)
    }

    static func text(_ duration: Duration) -> String {
        let microseconds = duration / .microseconds(1)
        return microseconds < 1000 ? "\(Int(microseconds)) µs" : "\(Int(microseconds / 1000)) ms"
    }

    /// The kind of the file system of a path, in the text of `/proc/self/mounts`: the last mount at the longest prefix.
    static func kind(of path: String, mounts: String) -> String? {
        var best: (length: Int, kind: String)?
        for line in mounts.split(separator: "\n") {
            let parts = line.split(separator: " ")
            guard parts.count > 2 else { continue }
            // Spaces are written as \040 there (fstab(5)).
            let place = parts[1].replacing("\\040", with: " ")
            let isAbove = place == "/" || path == place || path.utf8.starts(with: "\(place)/".utf8)
            if isAbove, place.count >= best?.length ?? 0 { best = (place.count, String(parts[2])) }
        }
        return best?.kind
    }
}
