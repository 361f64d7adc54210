import ArgumentParser
import Foundation
import HeraldMailbox
import HeraldModel

/// `herald backup`: copies a data folder, also while its service runs.
struct Backup: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Copy the data of a service, also while it runs.",
        discussion: """
            The backup has the trust folder with its ledger, and the store with registrations, notifications and the \
            journal. It has nothing of the running service (run/), and no demo device. It is checked before it gets its \
            name. Keep it as secret as the data folder: it holds keys. Registrations and notifications of a cluster \
            stay in the cluster: the backup of a node has the rest.

            Example:
              herald backup --data /var/lib/herald /var/backups/herald-monday
            """
    )

    @Argument(help: ArgumentHelp("The folder to make; a backup never overwrites.", valueName: "out"))
    var out: String

    @OptionGroup var data: DataOptions

    func run() async throws {
        umask(0o077)
        let path = try data.path()
        try DataFolder(path: path).checkOwner()
        let folder = try DataFolder.existing(path)
        let target = DataFolder(path: out).path
        let report = try await BackupWriter(folder: folder, target: target).write(now: ServiceClock().now())
        for path in report.leftOut { Terminal.complain("herald: \(path) is not in the backup: it is no regular file") }
        DamageReport.complain(report.damaged)
        if data.json { return try Terminal.sayJSON(BackupReport(path: target, report.manifest, report.damaged)) }
        Terminal.say("backup         \(target)")
        report.manifest.lines.forEach(Terminal.say)
    }
}

/// `herald restore`: makes a data folder from a backup.
struct Restore: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Make a data folder from a backup.",
        discussion: """
            Every byte is compared with the backup's list, and the databases are checked. Stop the service, and move its \
            folder away: a restore never overwrites. What happened since the backup is not in it; the command says what \
            this means.

            Example:
              herald restore /var/backups/herald-monday --data /var/lib/herald
            """
    )

    @Argument(help: ArgumentHelp("The backup's folder.", valueName: "backup"))
    var backup: String

    @OptionGroup var data: DataOptions

    func run() throws {
        umask(0o077)
        let folder = DataFolder(path: try data.path())
        let source = DataFolder(path: backup).path
        let (manifest, damaged) = try RestoreWriter(backup: source, folder: folder).write()
        DamageReport.complain(damaged)
        if data.json { return try Terminal.sayJSON(BackupReport(path: folder.path, manifest, damaged)) }
        Terminal.say("restored       \(folder.path)")
        Terminal.say("from           \(manifest.created), Herald \(manifest.herald)")
        manifest.lines.forEach(Terminal.say)
        if geteuid() == 0, FolderOwner(of: folder.path)?.user == 0 {
            Terminal.say("owner          root: if the service has a user of its own, chown -R the folder")
        }
        RestoreReport.lines(isClusterNode: manifest.isClusterNode).forEach(Terminal.say)
    }
}

/// The meaning of a restore, for people.
enum RestoreReport {
    static func lines(isClusterNode: Bool) -> [String] {
        guard !isClusterNode else {
            return [
                "",
                "Devices and notifications are in the cluster, and lose nothing. Credentials and revocations since the backup",
                "come from there when the node starts. Lines that its journal got since are lost.",
            ]
        }
        return [
            "",
            "The service is as it was at the backup. Since then:",
            "- accepted notifications are lost; some that waited may be delivered again",
            "- revocations are lost: revoke those devices and providers again",
            "- used invitations are open again: withdraw them (herald device invite --list)",
            "- device tokens that became invalid are valid again; to end them, run herald token rotate, and retire the older",
            "  keys when the devices have connected",
        ]
    }
}

/// The warning about damaged rows of a store, for people.
private enum DamageReport {
    /// - Parameter rows: The number of damaged rows; nothing is printed for 0.
    static func complain(_ rows: Int) {
        guard rows > 0 else { return }
        Terminal.complain(
            "herald: the store has \(rows) damaged rows, which the service leaves out: keep an older backup, and check the disk"
        )
    }
}

/// A backup as `--json` prints it.
private struct BackupReport: Encodable {
    let path: String
    let herald: String
    let created: String
    let bytes: Int
    let files: Int
    /// Whether devices and notifications are in a cluster.
    let clusterNode: Bool
    let waiting: Int?
    let devices: Int?
    let damaged: Int

    init(path: String, _ manifest: BackupManifest, _ damaged: Int) {
        self.path = path
        herald = manifest.herald
        created = manifest.created
        bytes = manifest.bytesInAll
        files = manifest.files.count
        clusterNode = manifest.isClusterNode
        waiting = manifest.isClusterNode ? nil : manifest.waiting
        devices = manifest.isClusterNode ? nil : manifest.devices
        self.damaged = damaged
    }
}

extension BackupManifest {
    /// The size of all files, in bytes.
    fileprivate var bytesInAll: Int { files.reduce(0) { $0 + $1.size } }

    /// The content for people.
    fileprivate var lines: [String] {
        let size = ["size           \(bytesInAll) bytes in \(files.count) files"]
        guard !isClusterNode else {
            return size + [
                "content        authorities, keys, credentials and journal of a cluster's node; devices and notifications stay "
                    + "in the cluster"
            ]
        }
        return size + ["devices        \(devices)", "notifications  \(waiting) waiting"]
    }
}
