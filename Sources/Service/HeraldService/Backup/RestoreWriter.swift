import Foundation
import HeraldStores
import HeraldTrust

/// Makes a data folder from a backup, at a path where there is none or an empty one.
///
/// The files are copied into a folder within the data folder, compared with the manifest and checked, and then moved to their
/// places, the file `format` last. A data folder without it starts no service, and another restore starts over.
package struct RestoreWriter {
    /// The backup's folder.
    package let backup: String
    /// The data folder that it becomes.
    package let folder: DataFolder

    package init(backup: String, folder: DataFolder) {
        self.backup = backup
        self.folder = folder
    }

    /// Restores the backup.
    /// - Returns: Its manifest, and the number of damaged rows of the store.
    /// - Throws: ``CommandError``; then no service can start on the folder.
    package func write() throws -> (manifest: BackupManifest, damaged: Int) {
        let manifest = try readManifest()
        try checkApart()
        let isNew = mkdir(folder.path, 0o700) == 0
        guard isNew || errno == EEXIST else {
            let failure = SafeFile.failure("cannot make the folder", folder.path)
            try OutputFile.checkFolder(SafeFile.folder(of: folder.path), for: folder.path)
            throw failure
        }
        guard let owner = FolderOwner(of: folder.path) else { throw SafeFile.failure("cannot read", folder.path) }
        if !isNew { try checkTarget(owner) }
        do {
            if let service = DisplacedService.find(folder) { throw service.error }
            return (manifest, try restore(manifest, owner))
        } catch {
            if isNew { rmdir(folder.path) }
            throw error
        }
    }

    /// Reads the list of the backup.
    /// - Throws: ``CommandError/Code/folder``.
    package func readManifest() throws -> BackupManifest {
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: backup, isDirectory: &isFolder) else {
            throw CommandError(.folder, "there is no folder \(backup): name a folder that herald backup made")
        }
        guard isFolder.boolValue else {
            throw CommandError(
                .folder,
                "\(backup) is not a folder: name a folder that herald backup made, and unpack an archive first"
            )
        }
        let path = "\(backup)/\(BackupLayout.manifest)"
        guard access(path, F_OK) == 0 || errno != ENOENT else {
            throw CommandError(
                .folder,
                "\(backup) is not a backup: it has no file \(BackupLayout.manifest); name a folder that herald backup made"
            )
        }
        return try BackupManifest(reading: try SafeFile.read(path), at: path)
    }

    /// Refuses a data folder that is the backup, lies in it, or has it inside.
    private func checkApart() throws {
        let (source, target) = (ResolvedPath(backup), ResolvedPath(folder.path))
        guard source.contains(target) || target.contains(source) else { return }
        let overlap =
            source == target
            ? "\(folder.path) is the backup itself"
            : source.contains(target)
                ? "\(folder.path) is in the backup \(backup)" : "the backup \(backup) is in \(folder.path)"
        throw CommandError(
            .folder,
            "\(overlap), which a restore does not change: name a folder elsewhere with --data"
        )
    }

    /// Checks that the data folder is empty.
    private func checkTarget(_ owner: FolderOwner) throws {
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: folder.path) else {
            throw CommandError(.folder, "\(folder.path) is not a folder that can be read: name another with --data")
        }
        if names.contains("run"), case .held(let holder)? = try? owner.acting({ try FolderLock.attempt(folder) }) {
            let name = holder.map { "process \($0)" } ?? "another process"
            throw CommandError(
                .folderInUse,
                "\(name) is working on \(folder.path): stop it, and move the folder away; a restore never overwrites"
            )
        }
        let isInterrupted = names.contains(DataFolder.unfinishedRestore) && !names.contains(BackupLayout.format)
        let ours: Set<String> = [
            DataFolder.unfinishedRestore, BackupLayout.authority, BackupLayout.node, BackupLayout.folders[0],
            BackupLayout.folders[1],
        ]
        guard DataFolder.harmless.union(isInterrupted ? ours : []).isSuperset(of: names) else {
            throw CommandError(
                .folder,
                "\(folder.path) is not empty: move it away, or name another folder with --data; a restore never overwrites"
            )
        }
    }

    /// Restores with the rights of the folder's owner, who alone may change its content.
    /// - Returns: The number of damaged rows of the store.
    private func restore(_ manifest: BackupManifest, _ owner: FolderOwner) throws -> Int {
        let path = "\(folder.path)/\(DataFolder.unfinishedRestore)"
        let draft = try owner.acting { try DraftFolder(path, parts: BackupLayout.folders) }
        let damaged: Int
        do {
            for file in manifest.files { try copy(file, to: path, owner) }
            damaged = try owner.acting { try finish(path, manifest) }
        } catch {
            try? owner.acting { draft.remove() }
            throw error
        }
        try owner.acting { try place(draft, manifest) }
        return damaged
    }

    /// Copies a file of the backup, which the caller may read, but perhaps not the owner of the data folder.
    private func copy(_ file: BackupManifest.File, to draft: String, _ owner: FolderOwner) throws {
        let source = try FileCopy.Source("\(backup)/\(file.path)")
        let content = try owner.acting {
            try FileCopy.copy(source, to: "\(draft)/\(file.path)", mode: BackupLayout.mode(file.path))
        }
        guard content == FileCopy.Content(size: file.size, sha256: file.sha256) else {
            throw CommandError(
                .folder,
                "\(source.path) is damaged: its content is not what \(BackupLayout.manifest) lists; use another backup"
            )
        }
    }

    /// Checks the draft, and makes it durable.
    /// - Returns: The number of damaged rows of the store.
    private func finish(_ draft: String, _ manifest: BackupManifest) throws -> Int {
        let copy = DataFolder(path: draft)
        let content = try BackupCheck.check(copy, of: backup)
        // Another folder than the former node's: both must not have the same number.
        if manifest.cluster != nil { try NodeFile().write(copy) }
        for part in BackupLayout.folders { try SafeFile.syncFolder(at: "\(draft)/\(part)") }
        try SafeFile.syncFolder(at: draft)
        return content?.damaged ?? 0
    }

    /// Moves the parts of the draft to their places.
    ///
    /// An interruption leaves a folder that another restore takes over.
    private func place(_ draft: DraftFolder, _ manifest: BackupManifest) throws {
        let node = manifest.cluster != nil ? [BackupLayout.node] : []
        for part in BackupLayout.folders + node + [BackupLayout.authority] {
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
}
