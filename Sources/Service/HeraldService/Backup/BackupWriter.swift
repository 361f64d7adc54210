import CPosix
import Foundation
package import HeraldModel
import HeraldStores
import HeraldTrust

/// Makes a backup of a data folder, also while a service runs on it and commands change it.
///
/// 1. The store, one snapshot.
/// 2. The files of the trust folder, while no command changes them, and then the ledger.
///
/// Of a cluster, the store gets what the streams have, and the trust what other nodes have changed.
///
/// The trust is the newer part: it knows every device and every revocation of the time at which the store was copied.
package struct BackupWriter {
    /// A finished backup.
    package struct Report {
        package let manifest: BackupManifest
        /// Entries of the trust folder that are not files.
        package let leftOut: [String]
        /// The number of damaged rows of the store.
        package let damaged: Int
    }

    package let folder: DataFolder
    /// The folder that the backup becomes.
    package let target: String
    /// The cluster of the node whose folder it is; nil to copy the folder alone.
    package var cluster: ClusterBackup?

    package init(folder: DataFolder, target: String, cluster: ClusterBackup? = nil) {
        self.folder = folder
        self.target = target
        self.cluster = cluster
    }

    /// Makes the backup.
    /// - Throws: An error that says if there is a backup that a loss of power may undo. Otherwise there is none.
    package func write(now: WallTime) async throws -> Report {
        try checkTarget()
        let draft = try DraftFolder(target + ".unfinished", parts: BackupLayout.folders)
        let report: Report
        do {
            report = try await fill(draft.path, now: now)
            guard rename(draft.path, target) == 0 else {
                guard errno == ENOTEMPTY || errno == EEXIST else {
                    throw SafeFile.failure("cannot rename \(draft.path) to", target)
                }
                throw exists
            }
        } catch {
            draft.remove()
            throw error
        }
        do {
            try SafeFile.syncFolder(at: SafeFile.folder(of: target))
        } catch {
            throw CommandError(
                .file,
                "\(target) is whole, but a loss of power may take its name away: \(error); check the disk, then run sync"
            )
        }
        return report
    }

    private var exists: CommandError {
        CommandError(.file, "\(target) already exists: name a new folder; a backup never overwrites")
    }

    private func checkTarget() throws {
        guard !target.isEmpty else { throw CommandError(.file, "the backup's path is empty: name a new folder") }
        let parent = SafeFile.folder(of: target)
        try OutputFile.checkFolder(parent, for: target)
        var status = herald_status()
        guard herald_status(target, 0, &status) != 0 else { throw exists }
        guard !ResolvedPath(folder.path).contains(ResolvedPath(target)) else {
            throw CommandError(
                .file,
                "\(target) is in the data folder \(folder.path), with which it would be lost: name a folder elsewhere"
            )
        }
    }

    private func fill(_ draft: String, now: WallTime) async throws -> Report {
        // Read first: a first start that goes on meanwhile may add the store.
        let format = try SafeFile.read(folder.formatPath)
        try SafeFile.write(format, to: "\(draft)/\(BackupLayout.format)", mode: 0o600)
        let copy = DataFolder(path: draft)
        if try copy.hasStore() {
            try DatabaseCopy(of: .store, at: folder.databasePath).write(to: copy.databasePath)
            try await cluster?.fill(storeAt: copy.databasePath, now: now)
            try FileCopy.settle(copy.databasePath, mode: 0o600)
        } else if cluster != nil {
            throw CommandError(.folder, "\(folder.path) has no journal yet: start its node once, and repeat the backup")
        }
        let leftOut = try await TrustBackup.whileUnchanged(TrustLayout(data: folder.path)) { names in
            try copyTrust(names, to: draft)
        }
        if let cluster {
            try await cluster.takeTrust(into: copy)
            try FileCopy.settle("\(draft)/\(BackupLayout.ledger)", mode: 0o600)
        }
        let content = try BackupCheck.check(copy, of: folder.path)
        let isNode = FileManager.default.fileExists(atPath: folder.nodePath)
        let part: BackupManifest.ClusterPart? = cluster != nil ? .whole : isNode ? .node : nil
        let manifest = try BackupManifest(
            herald: Version.number,
            created: now.rfc3339,
            waiting: part == .node ? 0 : content?.waiting ?? 0,
            devices: part == .node ? 0 : content?.devices ?? 0,
            cluster: part,
            files: try files(of: draft)
        )
        try SafeFile.write(Array(try manifest.bytes()), to: "\(draft)/\(BackupLayout.manifest)", mode: 0o600)
        for part in BackupLayout.folders { try SafeFile.syncFolder(at: "\(draft)/\(part)") }
        try SafeFile.syncFolder(at: draft)
        return Report(manifest: manifest, leftOut: leftOut, damaged: content?.damaged ?? 0)
    }

    /// Copies the trust folder and the authority that clients trust.
    /// - Returns: The paths that are not files.
    private func copyTrust(_ names: [String], to draft: String) throws -> [String] {
        var leftOut: [String] = []
        for name in names {
            let path = "\(folder.trustPath)/\(name)"
            var status = herald_status()
            guard herald_status(path, 0, &status) == 0, mode_t(status.mode) & S_IFMT == S_IFREG else {
                leftOut.append(path)
                continue
            }
            _ = try FileCopy.copy(FileCopy.Source(path), to: "\(draft)/trust/\(name)", mode: 0o600)
        }
        let authority = try FileCopy.Source(folder.authorityPath)
        _ = try FileCopy.copy(authority, to: "\(draft)/\(BackupLayout.authority)", mode: 0o600)
        try DatabaseCopy(of: .ledger, at: "\(folder.path)/\(BackupLayout.ledger)")
            .write(to: "\(draft)/\(BackupLayout.ledger)")
        try FileCopy.settle("\(draft)/\(BackupLayout.ledger)", mode: 0o600)
        return leftOut
    }

    private func files(of draft: String) throws -> [BackupManifest.File] {
        var paths = [BackupLayout.format, BackupLayout.authority]
        for part in BackupLayout.folders {
            paths += try FileManager.default.contentsOfDirectory(atPath: "\(draft)/\(part)").map { "\(part)/\($0)" }
        }
        return try paths.map { path in
            let content = try FileCopy.content(of: "\(draft)/\(path)")
            return BackupManifest.File(path: path, size: content.size, sha256: content.sha256)
        }
    }
}
