import Foundation
import HeraldDevice
import HeraldModel
import HeraldPhone
import HeraldService
import HeraldTrust
import ServiceLifecycle

/// The additions of `--demo` to a service.
struct Demo: ServiceGuest {
    private let folder: DemoFolder
    private let app: Topic
    private let screenPort: Int

    /// Makes the missing credentials and the device's certificate.
    /// - Throws: `TrustError` or ``CommandError``.
    init(_ data: DataFolder, trust: TrustFolder, screenPort: Int = 0, now: WallTime) async throws {
        guard let app = Topic(DemoFolder.app) else {
            throw CommandError(.configuration, "the demo's app is not a topic")
        }
        self.app = app
        self.screenPort = screenPort
        folder = DemoFolder(data)
        try await folder.make(with: trust, app: app, now: now)
    }

    /// The demo's device, for listeners that are open.
    /// - Throws: `DeviceError` or ``CommandError``.
    func service(
        _ data: DataFolder,
        host: String,
        apiPort: Int,
        devicePort: Int,
        ready: AsyncStream<String?>
    ) throws -> any Service {
        var configuration = DeviceConfiguration(
            host: NumericAddress.reachable(host),
            port: devicePort,
            credential: try DeviceCredential(pem: try SafeFile.read(folder.devicePath)),
            authorities: try SafeFile.read(data.authorityPath)
        )
        // The server certificate names this machine, whatever the address.
        configuration.serverName = "localhost"
        let curl = DemoCurl(
            authorityPath: Demo.absolute(data.authorityPath),
            certificatePath: Demo.absolute(folder.providerPath),
            host: host,
            port: apiPort
        )
        let agent = try DeviceAgent(
            connection: try DeviceClient(configuration),
            device: configuration.credential.id.name,
            service: "\(HostPort(host: host, port: devicePort))"
        )
        return DemoService(agent: agent, app: app, curl: curl, screenPort: screenPort, ready: ready)
    }

    private static func absolute(_ path: String) -> String {
        URL(fileURLWithPath: path).standardizedFileURL.path
    }
}
