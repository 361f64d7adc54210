import Foundation
import HeraldDevice
import HeraldJSON
import HeraldModel

/// The agent's part of a device's folder.
///
/// One agent or command uses it at a time.
///
///     apps/<bundle id>.app/   bundles, copied when they are installed
///     containers/<bundle id>/ the apps' data: Library/Sounds, and the files of their programs
///     state.json              the device's state (PhoneState)
///     shown.jsonl             the display log (DisplayLog)
///     run/agent.sock          the local socket
///     run/lock                locked by the agent or command that uses the folder
final class AgentFolder: Sendable {
    /// The largest state file, in bytes.
    ///
    /// The limits of ``PhoneLimits``, ``BundleLimits`` and ``LocalSocket`` keep the states of ordinary devices far below it.
    static let maximumStateBytes = 64 << 20

    let path: String
    /// Whether the folder outlives the agent.
    let isKept: Bool
    private let lock: CInt

    var appsPath: String { path + "/apps" }
    var statePath: String { path + "/state.json" }
    var displayLogPath: String { path + "/shown.jsonl" }
    var socketPath: String { path + "/run/agent.sock" }

    func bundlePath(_ topic: Topic) -> String { "\(appsPath)/\(topic).app" }
    func containerPath(_ topic: Topic) -> String { "\(path)/containers/\(topic)" }

    /// Opens a device's folder, and creates missing parts.
    ///
    /// Throws ``DeviceError/Code/badFolder``, and ``DeviceError/Code/folderInUse`` if another agent or command uses it.
    convenience init(_ path: String) throws {
        try self.init(URL(fileURLWithPath: path).standardizedFileURL.path, isKept: true)
    }

    /// Creates a folder for a device that keeps nothing; it is deleted with the device.
    static func temporary() throws -> AgentFolder {
        guard let made = AgentFile.makeTemporaryFolder(in: NSTemporaryDirectory(), named: "herald-agent") else {
            throw AgentFile.failure("cannot create a folder in", NSTemporaryDirectory())
        }
        return try AgentFolder(URL(fileURLWithPath: made).standardizedFileURL.path, isKept: false)
    }

    private init(_ path: String, isKept: Bool) throws {
        self.path = path
        self.isKept = isKept
        for folder in [path, path + "/apps", path + "/containers", path + "/run"] { try AgentFile.makeFolder(folder) }
        let file = path + "/run/lock"
        lock = open(file, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard lock >= 0 else { throw AgentFile.failure("cannot open", file) }
        // `deinit` closes the file, also if this throws: all properties are set.
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            throw DeviceError(.folderInUse, "another agent or command uses \(path): stop it, or name another folder")
        }
    }

    deinit {
        if lock >= 0 { close(lock) }
        discard()
    }

    /// Deletes the folder of a device that keeps nothing; a process that exits does not wait for `deinit`.
    func discard() {
        if !isKept { try? FileManager.default.removeItem(atPath: path) }
    }

    // MARK: - State

    /// Reads the state.
    ///
    /// A file that this version cannot read is set aside, and its readable parts take its place.
    /// - Returns: The state, and a sentence for the user about what was set aside.
    func readState() throws -> (state: PhoneState, fault: String?) {
        guard isKept, let bytes = try AgentFile.read(statePath, limit: Self.maximumStateBytes) else {
            return (PhoneState(), nil)
        }
        if let state = try? JSON.decode(PhoneState.self, from: bytes) { return (state, nil) }
        let aside = try AgentFile.setAside(bytes, of: statePath)
        var state = PhoneState()
        guard var members = try JSON(encoding: state).members, let read = JSON.Object(bytes, rules: .lenient) else {
            try write(state)
            return (state, "\(statePath) cannot be read, and is now \(aside): the device is empty")
        }
        var lost: [String] = []
        for (name, value) in read {
            let changed = members.merging([name: value])
            if let next = try? JSON.object(changed).decode(PhoneState.self) {
                (members, state) = (changed, next)
            } else {
                lost.append(name)
            }
        }
        try write(state)
        let parts = lost.isEmpty ? "parts are missing" : "the device has lost \(lost.joined(separator: ", "))"
        return (state, "\(statePath) cannot be read as a whole, and is now \(aside): \(parts)")
    }

    /// Replaces the state file, unless the state is too large to be read again.
    ///
    /// Throws ``DeviceError/Code/notPossible`` if it is too large, else ``DeviceError/Code/badFolder``; the file is unchanged then.
    func write(_ state: PhoneState, limit: Int = AgentFolder.maximumStateBytes) throws {
        guard isKept else { return }
        let bytes = try JSON.encode(state)
        guard bytes.count <= limit else {
            throw DeviceError(
                .notPossible,
                "\(statePath) would be larger than \(limit) bytes: clear notifications, or remove an app"
            )
        }
        try AgentFile.replace(statePath, with: bytes)
    }

    // MARK: - Bundles

    /// Copies a bundle into the folder, and replaces an earlier one.
    /// - Throws: ``BundleError``, or ``DeviceError/Code/badFolder``; then nothing has changed.
    func install(from source: String, limits: BundleLimits) throws -> (AppInformation, AppBundle) {
        let information = try AppInformation(folder: source, limits: limits)
        let target = bundlePath(information.topic)
        let draft = "\(appsPath)/.new-\(information.topic)"
        try? FileManager.default.removeItem(atPath: draft)
        do {
            var copy = BundleCopy(limits: limits)
            try copy.copy(source, to: draft)
            // The source may have changed meanwhile; the copy counts.
            let copied = try AppInformation(folder: draft, limits: limits)
            guard copied.topic == information.topic else { throw BundleError(source, "changes while it is copied") }
            _ = try AppBundle(folder: draft, limits: limits)
        } catch {
            try? FileManager.default.removeItem(atPath: draft)
            throw error
        }
        let former = "\(appsPath)/.old-\(information.topic)"
        try? FileManager.default.removeItem(atPath: former)
        if rename(target, former) != 0, errno != ENOENT { throw AgentFile.failure("cannot replace", target) }
        guard rename(draft, target) == 0 else {
            let error = AgentFile.failure("cannot write", target)
            rename(former, target)
            throw error
        }
        try AgentFile.syncFolder(appsPath)
        try? FileManager.default.removeItem(atPath: former)
        return try read(information.topic, limits: limits)
    }

    /// Reads the bundle of an installed app, and creates its container.
    func read(_ topic: Topic, limits: BundleLimits) throws -> (AppInformation, AppBundle) {
        let target = bundlePath(topic)
        // A crash between two renames leaves it under its other name.
        if !BundleFile.isFolder(target) { rename("\(appsPath)/.old-\(topic)", target) }
        let container = containerPath(topic)
        for folder in [container, container + "/Library", container + "/Library/Sounds"] {
            try AgentFile.makeFolder(folder)
        }
        return (
            try AppInformation(folder: target, limits: limits),
            try AppBundle(folder: target, container: container, limits: limits)
        )
    }

    /// Deletes an app's bundle and container.
    func delete(_ topic: Topic) throws {
        for path in [bundlePath(topic), "\(appsPath)/.old-\(topic)", containerPath(topic)] {
            do {
                try FileManager.default.removeItem(atPath: path)
            } catch {
                guard !FileManager.default.fileExists(atPath: path) else {
                    throw DeviceError(
                        .badFolder,
                        "cannot delete all of \(path), whose app was removed: delete it yourself; the agent tries again at its next "
                            + "start"
                    )
                }
            }
        }
        try AgentFile.syncFolder(appsPath)
    }

    /// Reads a plain file directly in a folder, and follows no link; nil if there is none or it is too large.
    func file(_ name: String, in folder: String, limit: Int) -> [UInt8]? {
        guard !name.utf8.contains(UInt8(ascii: "/")), name.utf8.first != UInt8(ascii: "."),
            let real = realpath(folder + "/" + name, nil)
        else {
            return nil
        }
        defer { free(real) }
        guard String(cString: real) == "\(folder)/\(name)" || String(cString: real) == realFolder(folder) + "/" + name
        else { return nil }
        return try? BundleFile.read(String(cString: real), limit: limit)
    }

    /// Resolves links above the device's folder; there are none below.
    private func realFolder(_ folder: String) -> String {
        guard let real = realpath(path, nil) else { return folder }
        defer { free(real) }
        return String(cString: real) + folder.dropFirst(path.count)
    }
}
