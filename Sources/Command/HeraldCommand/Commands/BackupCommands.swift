import ArgumentParser
import Foundation
import HeraldCluster
import HeraldConsole
import HeraldMailbox
import HeraldModel
import HeraldService

/// `herald backup`: copies a data folder, also while its service runs.
struct Backup: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Copy the data of a service, also while it runs.",
        discussion: """
            The backup has the trust folder with its ledger, and the store with registrations, notifications and the \
            journal. It has nothing of the running service (run/), and no demo device. It is checked before it gets its \
            name. Keep it as secret as the data folder: it holds keys.

            Of a cluster, name a node's folder, and the cluster's settings with --config: the backup has everything that \
            the NATS servers keep, while the nodes serve, and that node's journal. Without the settings, it has the \
            node's folder alone.

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
        let report = try await write(folder, to: target)
        for path in report.leftOut {
            Terminal.complain("herald: \(path) is not in the backup: it is not a regular file")
        }
        DamageReport.complain(report.damaged)
        if data.json { return try Terminal.sayJSON(BackupReport(path: target, report.manifest, report.damaged)) }
        Terminal.say("backup         \(target)")
        report.manifest.lines.forEach(Terminal.say)
    }

    private func write(_ folder: DataFolder, to target: String) async throws -> BackupWriter.Report {
        var writer = BackupWriter(folder: folder, target: target)
        let isNode = FileManager.default.fileExists(atPath: folder.nodePath)
        guard isNode, let settings = try data.clusterSettings() else {
            return try await writer.write(now: ServiceClock().now())
        }
        let clock = settings.clock.makeClock()
        return try await ClusterSession.visit(settings.cluster, folder, clock: clock) { session in
            writer.cluster = try await ClusterBackup(session, of: folder)
            return try await writer.write(now: clock.now())
        }
    }
}

/// `herald restore`: makes a data folder from a backup, and a cluster from the backup of one.
struct Restore: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Make a data folder from a backup.",
        discussion: """
            Every byte is compared with the backup's list, and the databases are checked. Stop the service, and move its \
            folder away: a restore never overwrites. What happened since the backup is not in it; the command says what \
            this means.

            With the settings of a cluster in --config, it also takes everything into NATS servers that have no cluster \
            yet, and the folder is that of the first node. A backup of one node has nothing to take.

            Example:
              herald restore /var/backups/herald-monday --data /var/lib/herald
            """
    )

    @Argument(help: ArgumentHelp("The backup's folder.", valueName: "backup"))
    var backup: String

    @OptionGroup var data: DataOptions

    func run() async throws {
        umask(0o077)
        let folder = DataFolder(path: try data.path())
        let writer = RestoreWriter(backup: DataFolder(path: backup).path, folder: folder)
        let settings = try writer.readManifest().cluster == .node ? nil : data.clusterSettings()
        if let settings {
            try settings.cluster.check(folder)
            try await FolderImport.checkEmpty(settings)
        }
        let (manifest, damaged) = try writer.write()
        let taken = try await take(folder, settings)
        let tokens = try ConsoleTokenFile(folder: folder).read().valid(at: ServiceClock().now())
        DamageReport.complain(damaged)
        if data.json {
            return try Terminal.sayJSON(
                BackupReport(path: folder.path, manifest, damaged, taken: taken, tokens: tokens)
            )
        }
        Terminal.say("restored       \(folder.path)")
        Terminal.say("from           \(manifest.created), Herald \(manifest.herald)")
        manifest.lines.forEach(Terminal.say)
        if geteuid() == 0, FolderOwner(of: folder.path)?.user == 0 {
            Terminal.say("owner          root: if the service has a user of its own, chown -R the folder")
        }
        if let taken {
            Terminal.say("")
            Terminal.say("taken into the cluster:")
            taken.lines.forEach(Terminal.say)
            ClusterImport.Summary.next(folder.path).forEach(Terminal.say)
        }
        RestoreReport.lines(taken == nil ? manifest.cluster : nil, folder.path).forEach(Terminal.say)
        RestoreReport.lines(of: tokens).forEach(Terminal.say)
    }

    private func take(_ folder: DataFolder, _ settings: ServerConfiguration?) async throws -> ClusterImport.Summary? {
        guard let settings else { return nil }
        do {
            return try await FolderImport(configuration: settings, folder: folder, isRestored: true).run()
        } catch {
            throw CommandError(
                .refused,
                "\(folder.path) is restored, but not in the cluster yet: \(error). Mend that, and run herald cluster import "
                    + "\(folder.path)"
            )
        }
    }
}

extension DataOptions {
    /// The settings of the service, if they name a cluster.
    /// - Throws: ``CommandError/Code/configuration``.
    fileprivate func clusterSettings() throws -> ServerConfiguration? {
        let settings = try ServerConfiguration(Settings(file: config))
        return settings.cluster.servers.isEmpty ? nil : settings
    }
}

/// The meaning of a restore, for people.
enum RestoreReport {
    /// The lines for a restored service, or, if `part` is not nil, for that part of a cluster, which is in the folder alone.
    static func lines(_ part: BackupManifest.ClusterPart?, _ folder: String) -> [String] {
        switch part {
        case .node:
            [
                "",
                "Devices and notifications are in the cluster, and lose nothing. Credentials and revocations since the backup",
                "come from there when the node starts. Lines that its journal got since are lost.",
            ]
        case .whole:
            [
                "",
                "If the cluster lives, start the node: devices, notifications and revocations are there. If it is lost, take",
                "what the backup has into NATS servers without data: herald cluster import \(folder)",
            ]
        case nil:
            [
                "",
                "The service is as it was at the backup. Since then:",
                "- accepted notifications are lost; some that waited may be delivered again",
                "- revocations are lost: revoke those devices and providers again",
                "- used invitations are open again: withdraw them (herald device invitations)",
                "- device tokens that became invalid are valid again; to end them, run herald token rotate, and retire the older",
                "  keys when the devices have connected",
            ]
        }
    }
}

extension RestoreReport {
    /// The console's tokens that are valid again, also if they were revoked since the backup.
    fileprivate static func lines(of tokens: [String]) -> [String] {
        guard !tokens.isEmpty else { return [] }
        return [
            "- these tokens of the console are valid; revoke again those that were revoked (herald console revoke NAME):",
            "  \(tokens.map { LogText.escaped($0, limit: 64, spelling: .terminal) }.joined(separator: ", "))",
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
    /// The part of a cluster that the backup has: `node` or `whole`; absent for a single machine.
    let cluster: String?
    let waiting: Int?
    let devices: Int?
    let damaged: Int
    /// Counts of what a restore took into a cluster; absent without one.
    let taken: ClusterImport.Summary?
    /// Names of the console's tokens that are valid again; absent for a backup.
    let tokens: [String]?

    init(
        path: String,
        _ manifest: BackupManifest,
        _ damaged: Int,
        taken: ClusterImport.Summary? = nil,
        tokens: [String]? = nil
    ) {
        self.path = path
        herald = manifest.herald
        created = manifest.created
        bytes = manifest.bytesInAll
        files = manifest.files.count
        cluster = manifest.cluster?.rawValue
        waiting = manifest.cluster == .node ? nil : manifest.waiting
        devices = manifest.cluster == .node ? nil : manifest.devices
        self.damaged = damaged
        self.taken = taken
        self.tokens = tokens
    }
}

extension BackupManifest {
    /// The size of all files, in bytes.
    fileprivate var bytesInAll: Int { files.reduce(0) { $0 + $1.size } }

    /// The content for people.
    fileprivate var lines: [String] {
        let size = ["size           \(bytesInAll) bytes in \(files.count) files"]
        guard cluster != .node else {
            return size + [
                "content        authorities, keys, credentials and journal of a cluster's node; devices and notifications stay "
                    + "in the cluster: to have them too, name its settings with --config"
            ]
        }
        let content =
            cluster == .whole ? ["content        the whole cluster, with the journal of this node alone"] : []
        return size + content + ["devices        \(devices)", "notifications  \(waiting) waiting"]
    }
}
