import Foundation
import HeraldModel

/// The agent's part of a device's folder; one agent works on it at a time.
///
///     apps/<bundle id>.app/   bundles, copied when they are installed
///     containers/<bundle id>/ what the apps keep: Library/Sounds, and whatever their programs write
///     state.json              what the device knows (PhoneState)
///     saw.jsonl               what the user saw (SawFile)
///     run/agent.sock          the local socket
///     run/lock                held by the agent that works on the folder
final class AgentFolder: Sendable {
    /// The longest state that is read, in bytes.
    private static let maximumStateBytes = 64 << 20

    let path: String
    /// Whether what is in it outlives the agent.
    let isKept: Bool
    private let lock: CInt

    var appsPath: String { path + "/apps" }
    var statePath: String { path + "/state.json" }
    var sawPath: String { path + "/saw.jsonl" }
    var socketPath: String { path + "/run/agent.sock" }

    func bundlePath(_ topic: Topic) -> String { "\(appsPath)/\(topic).app" }
    func containerPath(_ topic: Topic) -> String { "\(path)/containers/\(topic)" }

    /// Opens a device's folder, and makes what is missing.
    ///
    /// Throws ``DeviceError/Code/badFolder``, and ``DeviceError/Code/folderInUse`` if another agent works on it.
    convenience init(_ path: String) throws {
        try self.init(URL(fileURLWithPath: path).standardizedFileURL.path, isKept: true)
    }

    /// A folder for a device that keeps nothing; it is gone with the device.
    static func temporary() throws -> AgentFolder {
        guard let made = AgentFile.makeTemporaryFolder(in: NSTemporaryDirectory(), named: "herald-agent") else {
            throw AgentFile.failure("cannot make a folder in", NSTemporaryDirectory())
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
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            close(lock)
            throw DeviceError(.folderInUse, "another agent is working on \(path): stop it, or name another folder")
        }
    }

    deinit {
        close(lock)
        discard()
    }

    /// Deletes the folder of a device that keeps nothing; a process that ends does not wait for the last reference.
    func discard() {
        if !isKept { try? FileManager.default.removeItem(atPath: path) }
    }

    // State.

    func readState() throws -> PhoneState {
        guard isKept, let bytes = try AgentFile.read(statePath, limit: Self.maximumStateBytes) else {
            return PhoneState()
        }
        do {
            return try JSONDecoder().decode(PhoneState.self, from: Data(bytes))
        } catch {
            throw DeviceError(.badFolder, "\(statePath) cannot be read: move it away, and the device begins anew")
        }
    }

    func write(_ state: PhoneState) throws {
        guard isKept else { return }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        try AgentFile.replace(statePath, with: Array(encoder.encode(state)))
    }

    // Bundles.

    /// Copies a bundle to where it belongs, in place of the one that was there.
    /// - Throws: ``BundleError``, or ``DeviceError/Code/badFolder``; then nothing has changed.
    func install(from source: String, limits: BundleLimits) throws -> (AppInformation, AppBundle) {
        let information = try AppInformation(folder: source, limits: limits)
        let place = bundlePath(information.topic)
        let draft = "\(appsPath)/.new-\(information.topic)"
        try? FileManager.default.removeItem(atPath: draft)
        do {
            var copy = BundleCopy(limits: limits)
            try copy.copy(source, to: draft)
            // What was read first may have changed meanwhile; the copy counts.
            let copied = try AppInformation(folder: draft, limits: limits)
            guard copied.topic == information.topic else { throw BundleError(source, "changes while it is copied") }
            _ = try AppBundle(folder: draft, limits: limits)
        } catch {
            try? FileManager.default.removeItem(atPath: draft)
            throw error
        }
        let former = "\(appsPath)/.old-\(information.topic)"
        try? FileManager.default.removeItem(atPath: former)
        if rename(place, former) != 0, errno != ENOENT { throw AgentFile.failure("cannot replace", place) }
        guard rename(draft, place) == 0 else {
            let error = AgentFile.failure("cannot write", place)
            rename(former, place)
            throw error
        }
        try AgentFile.syncFolder(appsPath)
        try? FileManager.default.removeItem(atPath: former)
        return try read(information.topic, limits: limits)
    }

    /// Reads the bundle of an app that is installed, and makes its container.
    func read(_ topic: Topic, limits: BundleLimits) throws -> (AppInformation, AppBundle) {
        let place = bundlePath(topic)
        // A crash between two renames left it under its other name.
        if !BundleFile.isFolder(place) { rename("\(appsPath)/.old-\(topic)", place) }
        let container = containerPath(topic)
        for folder in [container, container + "/Library", container + "/Library/Sounds"] {
            try AgentFile.makeFolder(folder)
        }
        return (
            try AppInformation(folder: place, limits: limits),
            try AppBundle(folder: place, container: container, limits: limits)
        )
    }

    /// Deletes everything that an app has here.
    func delete(_ topic: Topic) throws {
        for path in [bundlePath(topic), "\(appsPath)/.old-\(topic)", containerPath(topic)] {
            do {
                try FileManager.default.removeItem(atPath: path)
            } catch {
                guard !FileManager.default.fileExists(atPath: path) else {
                    throw DeviceError(.badFolder, "cannot delete \(path)")
                }
            }
        }
        try AgentFile.syncFolder(appsPath)
    }

    /// A plain file directly in a folder, through no link; nil if there is none or it is too large.
    func file(_ name: String, in folder: String, limit: Int) -> [UInt8]? {
        guard !name.contains("/"), !name.hasPrefix("."), let real = realpath(folder + "/" + name, nil) else {
            return nil
        }
        defer { free(real) }
        guard String(cString: real) == "\(folder)/\(name)" || String(cString: real) == realFolder(folder) + "/" + name
        else { return nil }
        return try? BundleFile.read(String(cString: real), limit: limit)
    }

    /// The folder's own path may lead over links, as far as the device's folder; below that there are none.
    private func realFolder(_ folder: String) -> String {
        guard let real = realpath(path, nil) else { return folder }
        defer { free(real) }
        return String(cString: real) + folder.dropFirst(path.count)
    }
}
