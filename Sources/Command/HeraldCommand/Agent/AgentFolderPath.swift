import Foundation
import HeraldDevice
import HeraldJSON
import HeraldModel
import HeraldPhone
import HeraldService

extension AgentFolderOptions {
    /// The device's folder, which must exist.
    func existingFolder() throws -> AgentFolderPath {
        let path = try folder(try settings()).path
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue else {
            throw CommandError(.folder, "there is no device folder at \(path): name it with --folder")
        }
        return AgentFolderPath(path: path)
    }
}

/// The folder of a device, for commands.
struct AgentFolderPath {
    static let defaultPath = DeviceFolder.defaultPath

    let path: String
    var wait = FolderWait()

    var device: DeviceFolder { DeviceFolder(path) }
    var socketPath: String { URL(fileURLWithPath: path).standardizedFileURL.path + "/run/agent.sock" }

    // MARK: - The agent of the folder

    /// Sends a request to the running agent.
    /// - Throws: `DeviceError`.
    @discardableResult
    func ask(_ request: JSON.Object) async throws -> JSON.Object {
        try await answer(to: request)
    }

    /// Performs an action through the running agent, or on the folder if none is running.
    func perform(_ action: PhoneAction) async throws {
        try await throughAgent {
            _ = try await answer(to: try action.request())
        } orFolder: {
            try await $0.perform(action)
        }
    }

    /// The pending local notifications of an app, or of all apps, from the running agent or from the folder.
    func pending(of topic: Topic?) async throws -> [PendingNotification] {
        var request: JSON.Object = ["do": .string("pending")]
        if let topic { request["topic"] = .string(topic.name) }
        return try await throughAgent {
            try PendingNotification.list(in: try await answer(to: request))
        } orFolder: {
            try await $0.pending(of: topic)
        }
    }

    /// The device as it looks, from the running agent or from the folder.
    func snapshot() async throws -> PhoneSnapshot {
        try await throughAgent {
            let answer = try await answer(to: ["do": .string("device")])
            return try AgentReport.decoded(answer["device"] ?? .null, as: PhoneSnapshot.self)
        } orFolder: {
            await $0.snapshot()
        }
    }

    private func answer(to request: JSON.Object) async throws -> JSON.Object {
        try await LocalClient.with(socket: socketPath) { try await $0.ask(request) }
    }

    /// Asks the running agent, or the folder if none is running; both again while another process uses the folder, which
    /// may be an agent that starts.
    private func throughAgent<Result>(
        _ ask: () async throws -> Result,
        orFolder use: (DeviceAgent) async throws -> Result
    ) async throws -> Result {
        try await wait.untilFree {
            do {
                return try await ask()
            } catch let error as DeviceError where error.code == .unreachable {
                let device = try DeviceAgent.stopped(folder: path)
                for fault in device.faults { Terminal.complain("herald: \(LogText.escaped(fault, limit: 8192))") }
                return try await use(device)
            }
        }
    }
}
