import Foundation

/// The data folder of a service.
///
///     ca.pem           the authority of the server certificate
///     format           the mark of Herald's data folder, with its format number
///     trust/    0700   authorities, keys, credentials
///     store/    0700   notifications, registrations, the journal
///     audit/    0700   who changed what by the console
///     run/      0700   of the running service: lock, listeners.json, serve.json, control.sock, admin.token
///     demo/     0700   the files of `serve --demo`
///     node.json 0600   of a cluster's node: what it has seen of its cluster
///
/// Nothing is written in a folder that is damaged or not Herald's.
package struct DataFolder: Hashable, Sendable {
    package static let defaultPath = "./herald-data"
    /// The content of the file `format`.
    ///
    /// The number grows when an older Herald cannot read the folder any more.
    package static let format = "herald 1\n"
    /// Its content once there is a database: from then on a missing one is lost, and is not created again.
    static let formatWithStore = format + "store\n"

    /// Files of a new file system, or of a folder in a repository.
    static let harmless: Set<String> = ["lost+found", ".gitkeep", ".gitignore", ".DS_Store"]
    /// The folder in a data folder into which a restore writes first.
    static let unfinishedRestore = ".restore"

    package let path: String

    /// - Parameter path: The folder's path; a slash at its end does not count.
    package init(path: String) {
        self.path = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    }

    package var authorityPath: String { path + "/ca.pem" }
    var formatPath: String { path + "/format" }
    package var trustPath: String { path + "/trust" }
    package var storePath: String { path + "/store" }
    package var databasePath: String { storePath + "/herald.db" }
    package var runPath: String { path + "/run" }
    package var auditPath: String { path + "/audit" }
    var consoleTokensPath: String { trustPath + "/console.tokens" }
    package var demoPath: String { path + "/demo" }
    package var nodePath: String { "\(path)/\(BackupLayout.node)" }
    var lockPath: String { runPath + "/lock" }
    var serveRecordPath: String { runPath + "/serve.json" }
    var listenersPath: String { runPath + "/listeners.json" }
    package var controlSocketPath: String { runPath + "/control.sock" }
    package var adminTokenPath: String { runPath + "/admin.token" }

    /// The longest path of a Unix socket, in bytes: swift-nio's limit on all systems; Linux itself takes 107.
    static let longestSocketPath = 103

    /// Checks that the control socket can have its path.
    ///
    /// Throws a ``CommandError`` if it is too long.
    package func checkSocketPath() throws {
        let length = controlSocketPath.utf8.count
        guard length > DataFolder.longestSocketPath else { return }
        throw CommandError(
            .folder,
            "the control socket's path \(controlSocketPath) has \(length) bytes, and a socket's has at most "
                + "\(DataFolder.longestSocketPath): name a folder with a shorter path with --data"
        )
    }

    /// Opens a data folder, or creates one at a path where there is none or an empty one.
    ///
    /// Throws a ``CommandError`` and leaves the folder unchanged if it is damaged or not Herald's.
    package static func open(_ path: String, mayCreate: Bool) throws -> DataFolder {
        let folder = DataFolder(path: path)
        switch try folder.condition() {
        case .missing, .empty:
            guard mayCreate else { throw missing(path) }
            try folder.create()
        case .ours:
            try folder.check()
            try folder.complete()
        }
        return folder
    }

    /// An existing data folder, for a command that only reads it: as its owner, or as root.
    /// - Throws: ``CommandError`` if there is none; nothing is created or changed.
    package static func existing(_ path: String) throws -> DataFolder {
        let folder = DataFolder(path: path)
        guard case .ours = try folder.condition() else { throw missing(path) }
        return folder
    }

    /// The error for a path where there is no data folder.
    package static func missing(_ path: String) -> CommandError {
        CommandError(
            .folder,
            "there is no data folder at \(path): make one with `herald init` or `herald serve`, or name it with --data"
        )
    }

    /// Creates a folder with mode 0700, or checks an existing one.
    /// - Throws: ``CommandError`` if it is open to others, or cannot be made.
    package static func securePrivateFolder(_ path: String) throws {
        if mkdir(path, 0o700) == 0 { return }
        guard errno == EEXIST else { throw SafeFile.failure("cannot make the folder", path) }
        try checkPrivateFolder(path)
    }

    /// Checks that a folder belongs to this process's user, and that others may not enter it.
    private static func checkPrivateFolder(_ path: String) throws {
        guard let found = try? FileManager.default.attributesOfItem(atPath: path) else {
            throw CommandError(.folder, "cannot access \(path): check the owner and mode of the folders above it")
        }
        guard found[.type] as? FileAttributeType == .typeDirectory else {
            throw CommandError(.folder, "\(path) is not a folder: move it away, or name another folder with --data")
        }
        let owner = (found[.ownerAccountID] as? NSNumber)?.uint32Value
        guard owner == geteuid() else { throw foreign(path, of: owner ?? 0) }
        let mode = (found[.posixPermissions] as? NSNumber)?.intValue ?? 0o777
        guard mode & 0o077 == 0 else {
            let digits = String(mode & 0o777, radix: 8)
            throw CommandError(.folder, "\(path) is open to others (mode 0\(digits)): run `chmod 700 \(path)`")
        }
    }

    /// The error for a folder of another user.
    private static func foreign(_ path: String, of owner: UInt32) -> CommandError {
        CommandError(.folder, "\(path) \(FolderOwner.refusal(of: owner))")
    }

    /// Checks that this process's user may use the folder of a service; reads nothing in it.
    /// - Throws: ``CommandError`` if it belongs to another user. Root may use every folder.
    package func checkOwner() throws {
        guard geteuid() != 0, let owner = FolderOwner(of: runPath) ?? FolderOwner(of: path), owner.user != geteuid()
        else { return }
        throw DataFolder.foreign(path, of: owner.user)
    }

    /// The content of the path of a data folder.
    package enum Condition {
        case missing
        case empty
        case ours
    }

    /// Looks at the path.
    /// - Throws: ``CommandError`` if there is something else, a folder of a newer Herald, or one of another user.
    package func condition() throws -> Condition {
        guard access(path, F_OK) == 0 else {
            if errno == ENOENT { return .missing }
            let reason = String(cString: strerror(errno))
            throw CommandError(.folder, "cannot open the data folder \(path) (\(reason)): run the command as its owner")
        }
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue else {
            throw CommandError(.folder, "\(path) is not a folder: name another with --data")
        }
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: path)
        } catch {
            try checkOwner()
            throw CommandError(.folder, "cannot read the data folder \(path): check its owner and mode")
        }
        if names.contains("format") {
            try checkFormat()
            return .ours
        }
        guard !names.contains(DataFolder.unfinishedRestore) else {
            throw CommandError(
                .folder,
                "a restore into \(path) was interrupted: repeat `herald restore`, or name another folder with --data"
            )
        }
        guard !names.contains("trust") || !names.contains("store") else {
            throw CommandError(
                .folder,
                "\(path) is a data folder of Herald's without the file `format`: move it away and restore a backup "
                    + "(`herald restore BACKUP --data \(path)`)"
            )
        }
        guard DataFolder.harmless.isSuperset(of: names) else {
            throw CommandError(
                .folder,
                "\(path) is not a data folder of Herald's (it holds other files, and no file `format`): "
                    + "name an empty or a new folder with --data"
            )
        }
        return .empty
    }

    /// Checks the file `format`.
    func checkFormat() throws {
        let text = String(decoding: try SafeFile.read(formatPath), as: UTF8.self)
        guard text != DataFolder.format, text != DataFolder.formatWithStore else { return }
        if text.hasPrefix("herald "), let number = Int(text.dropFirst(7).prefix { $0.isNumber }), number > 1 {
            throw CommandError(
                .folder,
                "\(path) was made by a newer Herald (format \(number)): use that version, or name another folder with --data"
            )
        }
        throw CommandError(
            .folder,
            "\(formatPath) is damaged: restore the folder from a backup, or name another with --data"
        )
    }

    private func create() throws {
        do {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        } catch {
            throw CommandError(.folder, "cannot make the data folder \(path): check that its parent can be written to")
        }
        try SafeFile.write(Array(DataFolder.format.utf8), to: formatPath, mode: 0o644)
        try complete()
    }

    private var parts: [String] { [trustPath, storePath, auditPath, runPath] }

    /// Creates the parts that an interrupted first start left out.
    private func complete() throws {
        for part in parts { try DataFolder.securePrivateFolder(part) }
    }

    /// Checks a folder that is Herald's, without changing it.
    /// - Throws: ``CommandError`` if a start would refuse it.
    package func check() throws {
        let hasStore = try hasStore()
        let isUsed = hasStore || access(authorityPath, F_OK) == 0
        for part in parts where access(part, F_OK) == 0 { try DataFolder.checkPrivateFolder(part) }
        guard !isUsed || access(trustPath, F_OK) == 0 else {
            throw CommandError(
                .folder,
                "\(trustPath) is missing from a data folder that was in use: move \(path) away and restore a backup "
                    + "(`herald restore BACKUP --data \(path)`). Only without one, start in a new folder: every device must "
                    + "then be activated again, every provider needs new credentials, and all device tokens change"
            )
        }
        if isUsed { try checkDatabase(hasStore) }
    }

    /// Whether the folder has a database.
    /// - Throws: ``CommandError/Code/file``.
    func hasStore() throws -> Bool {
        try SafeFile.read(formatPath) == Array(DataFolder.formatWithStore.utf8)
    }

    /// Records that the folder has a database.
    /// - Throws: ``CommandError/Code/file``.
    func recordStore() throws {
        guard try !hasStore() else { return }
        try SafeFile.write(Array(DataFolder.formatWithStore.utf8), to: formatPath, mode: 0o644)
    }

    /// Refuses a missing or empty database file, which SQLite would take for a new one.
    private func checkDatabase(_ hasStore: Bool) throws {
        guard !hasStore || access(databasePath, F_OK) == 0 else {
            throw CommandError(
                .folder,
                "\(databasePath) is missing, and the folder was in use: restore it from a backup; to begin without "
                    + "registrations and notifications, remove the line `store` from \(formatPath)"
            )
        }
        let found = try? FileManager.default.attributesOfItem(atPath: databasePath)
        guard let size = found?[.size] as? NSNumber, size.intValue == 0 else { return }
        throw CommandError(
            .folder,
            "\(databasePath) is empty, and the folder was in use: restore it from a backup, "
                + "or remove the file to begin without registrations and notifications"
        )
    }
}
