import Foundation

/// The folder that holds all that a service keeps.
///
///     ca.pem           the authority that everybody trusts
///     format           says that this folder is Herald's, and how it is laid out
///     trust/    0700   authorities, keys, credentials
///     store/    0700   notifications, registrations, the journal
///     run/      0700   lock, doors.json, control.sock, admin.token: of the running service
///     demo/     0700   what `serve --demo` made
///
/// A folder that is not Herald's, or that is damaged, is refused as it is: nothing in it is written or removed.
struct DataFolder: Hashable, Sendable {
    static let defaultPath = "./herald-data"
    /// What the file `format` says; the number grows when an older Herald could no longer read the folder.
    static let format = "herald 1\n"
    /// What it says once there is a database: one that is missing later is lost, and not yet to be made.
    static let formatWithStore = format + "store\n"

    let path: String

    var authorityPath: String { path + "/ca.pem" }
    var formatPath: String { path + "/format" }
    var trustPath: String { path + "/trust" }
    var storePath: String { path + "/store" }
    var databasePath: String { storePath + "/herald.db" }
    var runPath: String { path + "/run" }
    var demoPath: String { path + "/demo" }
    var lockPath: String { runPath + "/lock" }
    var doorsPath: String { runPath + "/doors.json" }
    var controlSocketPath: String { runPath + "/control.sock" }
    var adminTokenPath: String { runPath + "/admin.token" }

    /// The longest path of a Unix socket, in bytes: `sun_path` without its end, on Linux (macOS: four less).
    static let longestSocketPath = 107

    /// Checks that the control socket can have its path.
    ///
    /// Throws a ``CommandError`` if it is too long.
    func checkSocketPath() throws {
        let length = controlSocketPath.utf8.count
        guard length > DataFolder.longestSocketPath else { return }
        throw CommandError(
            .folder,
            "the control socket's path \(controlSocketPath) has \(length) bytes, and a socket's has at most "
                + "\(DataFolder.longestSocketPath): name a folder with a shorter path with --data"
        )
    }

    /// Opens a data folder; makes one, if it may, where there is none or where an empty folder is.
    ///
    /// Throws a ``CommandError`` that says what is wrong with the folder, which is then unchanged.
    static func open(_ path: String, mayCreate: Bool) throws -> DataFolder {
        let folder = DataFolder(path: path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path)
        switch try folder.condition() {
        case .missing, .empty:
            guard mayCreate else {
                throw CommandError(
                    .folder,
                    "there is no data folder at \(path): make one with `herald init` or `herald serve`, or name it with --data"
                )
            }
            try folder.create()
        case .ours:
            try folder.completeAndCheck()
        }
        return folder
    }

    /// Makes a folder that only its owner may enter, or checks that one is such.
    /// - Throws: ``CommandError`` if it is open to others, or cannot be made.
    static func securePrivateFolder(_ path: String) throws {
        if mkdir(path, 0o700) == 0 { return }
        guard errno == EEXIST else { throw SafeFile.failure("cannot make the folder", path) }
        guard let found = try? FileManager.default.attributesOfItem(atPath: path) else {
            throw CommandError(.folder, "cannot look at \(path): check the owner and mode of the folders above it")
        }
        guard found[.type] as? FileAttributeType == .typeDirectory else {
            throw CommandError(.folder, "\(path) is not a folder: move it away, or name another folder with --data")
        }
        let owner = (found[.ownerAccountID] as? NSNumber)?.uint32Value
        guard owner == geteuid() else {
            throw CommandError(
                .folder,
                "\(path) belongs to another user, and Herald runs as user \(geteuid()): run it as the owner"
            )
        }
        let mode = (found[.posixPermissions] as? NSNumber)?.intValue ?? 0o777
        guard mode & 0o077 == 0 else {
            let digits = String(mode & 0o777, radix: 8)
            throw CommandError(.folder, "\(path) is open to others (mode 0\(digits)): run `chmod 700 \(path)`")
        }
    }

    private enum Condition {
        case missing
        case empty
        case ours
    }

    private func condition() throws -> Condition {
        guard access(path, F_OK) == 0 else {
            if errno == ENOENT { return .missing }
            throw SafeFile.failure("cannot open the data folder", path)
        }
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue else {
            throw CommandError(.folder, "\(path) is not a folder: name another with --data")
        }
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: path)
        } catch {
            throw CommandError(.folder, "cannot read the data folder \(path): check its owner and mode")
        }
        if names.contains("format") {
            try checkFormat()
            return .ours
        }
        // What a new file system, or a folder kept in a repository, begins with.
        let harmless: Set<String> = ["lost+found", ".gitkeep", ".gitignore", ".DS_Store"]
        guard harmless.isSuperset(of: names) else {
            throw CommandError(
                .folder,
                "\(path) is not a data folder of Herald's (it holds other files, and no file `format`): "
                    + "name an empty or a new folder with --data"
            )
        }
        return .empty
    }

    private func checkFormat() throws {
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
        try completeAndCheck()
    }

    /// A first start that was interrupted left some of the parts out; one that ended has them all.
    private func completeAndCheck() throws {
        let isUsed = access(authorityPath, F_OK) == 0
        for part in [trustPath, storePath] where isUsed && access(part, F_OK) != 0 {
            throw CommandError(
                .folder,
                "\(part) is missing from a data folder that was in use: restore it from a backup, "
                    + "or name another folder with --data"
            )
        }
        for part in [trustPath, storePath, runPath] { try DataFolder.securePrivateFolder(part) }
        if isUsed { try checkDatabase() }
    }

    /// Keeps on record that the folder has a database.
    /// - Throws: ``CommandError/Code/file``.
    func recordStore() throws {
        guard try SafeFile.read(formatPath) != Array(DataFolder.formatWithStore.utf8) else { return }
        try SafeFile.write(Array(DataFolder.formatWithStore.utf8), to: formatPath, mode: 0o644)
    }

    /// To the engine a missing or an empty file is a new database; here it may be one that was lost.
    private func checkDatabase() throws {
        let hadStore = try SafeFile.read(formatPath) == Array(DataFolder.formatWithStore.utf8)
        guard !hadStore || access(databasePath, F_OK) == 0 else {
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
