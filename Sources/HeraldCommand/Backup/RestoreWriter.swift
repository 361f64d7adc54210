import Foundation
import HeraldStores
import HeraldTrust

/// Makes a data folder from a backup, at a path where there is none or an empty one.
///
/// The files are copied into a folder within the data folder, compared with the manifest and checked, and then moved to their
/// places, the file `format` last. A data folder without it starts no service, and another restore starts over.
struct RestoreWriter {
    /// The backup's folder.
    let backup: String
    /// The data folder that it becomes.
    let folder: DataFolder

    /// Restores the backup.
    /// - Throws: ``CommandError``; then no service can start on the folder.
    func write() throws -> BackupManifest {
        let manifest = try readManifest()
        let isNew = try prepareTarget()
        do {
            try restore(manifest)
        } catch {
            if isNew { rmdir(folder.path) }
            throw error
        }
        return manifest
    }

    private func readManifest() throws -> BackupManifest {
        let path = "\(backup)/\(BackupLayout.manifest)"
        guard access(path, F_OK) == 0 || errno != ENOENT else {
            throw CommandError(.folder, "\(backup) is no backup: it has no file \(BackupLayout.manifest)")
        }
        return try BackupManifest(reading: try SafeFile.read(path), at: path)
    }

    /// Makes the data folder, or checks that it is empty.
    /// - Returns: Whether it was made.
    private func prepareTarget() throws -> Bool {
        if mkdir(folder.path, 0o700) == 0 { return true }
        guard errno == EEXIST else { throw SafeFile.failure("cannot make the folder", folder.path) }
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: folder.path) else {
            throw CommandError(.folder, "\(folder.path) is no folder that can be read: name another with --data")
        }
        if names.contains("run"), case .held(let holder)? = try? FolderLock.attempt(folder) {
            let name = holder.map { "process \($0)" } ?? "another process"
            throw CommandError(
                .folderInUse,
                "\(name) is working on \(folder.path): stop it, and move the folder away; a restore never overwrites"
            )
        }
        let isInterrupted = names.contains(DataFolder.unfinishedRestore) && !names.contains(BackupLayout.format)
        let ours: Set<String> = [
            DataFolder.unfinishedRestore, BackupLayout.authority, BackupLayout.folders[0], BackupLayout.folders[1],
        ]
        guard DataFolder.harmless.union(isInterrupted ? ours : []).isSuperset(of: names) else {
            throw CommandError(
                .folder,
                "\(folder.path) is not empty: move it away, or name another folder with --data; a restore never overwrites"
            )
        }
        return false
    }

    private func restore(_ manifest: BackupManifest) throws {
        let draft = try DraftFolder("\(folder.path)/\(DataFolder.unfinishedRestore)", parts: BackupLayout.folders)
        do {
            try fill(draft.path, manifest)
            try giveToOwner(draft.path, manifest)
        } catch {
            draft.remove()
            throw error
        }
        // From here on an interruption leaves a folder that another restore takes over.
        for part in BackupLayout.folders + [BackupLayout.authority] {
            let place = "\(folder.path)/\(part)"
            do {
                if access(place, F_OK) == 0 { try FileManager.default.removeItem(atPath: place) }
            } catch {
                throw CommandError(.file, "cannot replace \(place), which an interrupted restore left: remove it")
            }
            try move(draft.path, part)
        }
        try SafeFile.syncFolder(at: folder.path)
        try move(draft.path, BackupLayout.format)
        draft.remove()
        try SafeFile.syncFolder(at: folder.path)
    }

    private func move(_ draft: String, _ part: String) throws {
        guard rename("\(draft)/\(part)", "\(folder.path)/\(part)") == 0 else {
            throw SafeFile.failure("cannot write", "\(folder.path)/\(part)")
        }
    }

    private func fill(_ draft: String, _ manifest: BackupManifest) throws {
        for file in manifest.files {
            let source = "\(backup)/\(file.path)"
            let content = try FileCopy.copy(source, to: "\(draft)/\(file.path)", mode: BackupLayout.mode(file.path))
            guard content == FileCopy.Content(size: file.size, sha256: file.sha256) else {
                throw CommandError(
                    .folder,
                    "\(source) is damaged: its content is not what \(BackupLayout.manifest) lists; use another backup"
                )
            }
        }
        _ = try BackupCheck.check(DataFolder(path: draft))
        for part in BackupLayout.folders { try SafeFile.syncFolder(at: "\(draft)/\(part)") }
        try SafeFile.syncFolder(at: draft)
    }

    /// Gives the files to the owner of the data folder, if root restores for another user.
    private func giveToOwner(_ draft: String, _ manifest: BackupManifest) throws {
        guard geteuid() == 0, let owner = FolderOwner(of: folder.path), owner.user != 0 else { return }
        for path in [""] + BackupLayout.folders + manifest.files.map(\.path) {
            let place = path.isEmpty ? draft : "\(draft)/\(path)"
            guard lchown(place, owner.user, owner.group) == 0 else {
                throw SafeFile.failure("cannot change the owner of", place)
            }
        }
    }
}

/// The user and the group to whom a folder belongs.
struct FolderOwner: Hashable {
    let user: UInt32
    let group: UInt32

    /// - Returns: nil if the system does not say.
    init?(of path: String) {
        guard let found = try? FileManager.default.attributesOfItem(atPath: path),
            let user = (found[.ownerAccountID] as? NSNumber)?.uint32Value,
            let group = (found[.groupOwnerAccountID] as? NSNumber)?.uint32Value
        else { return nil }
        (self.user, self.group) = (user, group)
    }
}
