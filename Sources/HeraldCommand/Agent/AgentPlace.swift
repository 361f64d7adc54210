import Foundation
import HeraldDevice

extension AgentFolderOptions {
    /// The device's folder, which must be there.
    func place() throws -> AgentPlace {
        let path = try folder(try settings()).path
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue else {
            throw CommandError(.folder, "there is no device's folder at \(path): name it with --folder")
        }
        return AgentPlace(path: path)
    }
}

/// A device's folder, as commands use it.
struct AgentPlace {
    static let defaultPath = DeviceFolder.defaultPath

    let path: String

    var device: DeviceFolder { DeviceFolder(path) }
    var socketPath: String { URL(fileURLWithPath: path).standardizedFileURL.path + "/run/agent.sock" }

    /// Where the service is that the device was activated at; nil if something else was said.
    func service(unless peer: PeerOptions) throws -> DeviceFolder.Service? {
        guard peer.service == nil, peer.data == nil, device.isActivated else { return nil }
        return try device.service()
    }

    /// The authority that the device was activated by; nil if something else was said.
    func authorities(unless peer: PeerOptions) throws -> [UInt8]? {
        guard peer.ca == nil, peer.data == nil, device.isActivated else { return nil }
        return try device.authorities()
    }

    // The agent that works on it.

    /// Asks the agent that runs here.
    /// - Throws: ``CommandError``.
    @discardableResult
    func ask(_ request: [String: PayloadValue]) async throws -> [String: PayloadValue] {
        try await translatingDeviceErrors {
            try await LocalClient.with(socket: socketPath) { try await $0.ask(request) }
        }
    }

    /// Has the agent do something, or does it on the folder where none runs.
    func perform(_ request: [String: PayloadValue], _ action: PhoneAction) async throws {
        do {
            try await ask(request)
        } catch let error as CommandError where error.code == .unreachable {
            try await translatingDeviceErrors { try await DeviceAgent.resting(folder: path).perform(action) }
        }
    }
}

/// Runs something that a device may fail at; the failure is told as every other of a command.
func translatingDeviceErrors<Result>(_ body: () async throws -> Result) async throws -> Result {
    do {
        return try await body()
    } catch let error as DeviceError {
        let code: CommandError.Code =
            switch error.code {
            case .refused, .notPossible: .refused
            case .unreachable: .unreachable
            case .folderInUse: .folderInUse
            default: .file
            }
        throw CommandError(code, error.message)
    } catch let error as EnrollmentError {
        throw CommandError(error)
    }
}
