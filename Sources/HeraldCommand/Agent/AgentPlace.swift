import ArgumentParser
import Foundation
import HeraldDevice

/// Which device's folder a command is about.
struct AgentFolderOption: ParsableArguments {
    @Option(help: ArgumentHelp("The device's folder. (default: ./herald-device)", valueName: "folder"))
    var folder: String?

    /// What was typed, else the environment, else the usual one; it must be there.
    func place(environment: [String: String] = ProcessInfo.processInfo.environment) throws -> AgentPlace {
        let path = folder ?? environment["HERALD_FOLDER"] ?? AgentPlace.defaultPath
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue else {
            throw CommandError(.folder, "there is no device's folder at \(path): name it with --folder")
        }
        return AgentPlace(path: path)
    }
}

/// A device's folder, as commands use it.
struct AgentPlace {
    static let defaultPath = "./herald-device"

    let path: String

    var identityPath: String { path + "/identity.pem" }
    private var authorityPath: String { path + "/ca.pem" }
    private var servicePath: String { path + "/service.json" }
    var socketPath: String { URL(fileURLWithPath: path).standardizedFileURL.path + "/run/agent.sock" }

    private struct Service: Decodable {
        let host: String
        let port: Int
        let server_name: String?
    }

    /// Where the service is that the device was activated at; nil if something else was said.
    func service(unless peer: PeerOptions) throws -> HostPort? {
        guard peer.service == nil, peer.data == nil else { return nil }
        return try read().map { HostPort(host: $0.host, port: $0.port) }
    }

    /// The name that the service's certificate has, if it is not the host's.
    func serverName(unless peer: PeerOptions) -> String? {
        guard peer.service == nil, peer.data == nil else { return nil }
        return (try? read())??.server_name
    }

    /// The authority that the device was activated by; nil if something else was said.
    func authorities(unless peer: PeerOptions) throws -> [UInt8]? {
        guard peer.ca == nil, FileManager.default.fileExists(atPath: authorityPath) else { return nil }
        return try SafeFile.read(authorityPath)
    }

    private func read() throws -> Service? {
        guard FileManager.default.fileExists(atPath: servicePath) else { return nil }
        guard let service = try? JSONDecoder().decode(Service.self, from: Data(try SafeFile.read(servicePath))) else {
            throw CommandError(.file, "\(servicePath) must be like {\"host\":\"push.example.com\",\"port\":5223}")
        }
        return service
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
    }
}
