import ArgumentParser
import Foundation

/// Which service a command speaks to as a client, and whom it trusts to vouch for it.
///
/// What was not typed comes from the environment and the configuration file (``complete(from:)``).
struct PeerOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Where the service is. (default: the one that runs in the data folder, else localhost)",
            valueName: "host:port"
        )
    )
    var service: String?

    @Option(
        help: ArgumentHelp(
            "The authority to trust, PEM. (default: ca.pem of the data folder, else the system's)",
            valueName: "file"
        )
    )
    var ca: String?

    @Option(
        help: ArgumentHelp(
            "The data folder of a service of this machine. (default: ./herald-data)",
            valueName: "folder"
        )
    )
    var data: String?

    @Option(help: ArgumentHelp("A YAML file with these options as keys.", valueName: "file"))
    var config: String?

    /// What the environment and the configuration file say.
    /// - Throws: ``CommandError/Code/configuration``.
    func settings(environment: [String: String] = ProcessInfo.processInfo.environment) throws -> Settings {
        try Settings(commandLine: [:], environment: environment, file: config)
    }

    /// Takes over what was not typed.
    mutating func complete(from settings: Settings) throws {
        service = try service ?? settings.text(.service)
        ca = try ca ?? settings.text(.ca)
        data = try data ?? settings.text(.data)
    }

    /// Where to connect to: what was named, else the door of the service that runs in the data folder here, else
    /// the door's usual port.
    func service(defaultPort: Int, door: KeyPath<Doors, Int?>) throws -> HostPort {
        if let service {
            guard let place = HostPort(service, defaultPort: defaultPort) else {
                throw ValidationError(
                    "'\(LogText.escaped(service, limit: 64))' is not a host and a port, like localhost:2197."
                )
            }
            return place
        }
        let port = Doors.read(from: dataFolder)?[keyPath: door]
        return HostPort(host: "localhost", port: port ?? defaultPort)
    }

    /// The authorities' certificates, PEM; nil for those of the system.
    func authorities() throws -> [UInt8]? {
        if let ca { return try SafeFile.read(ca) }
        // A service that was named is somebody else's, and so may its authority be; the one here has ours.
        let ours = dataFolder.authorityPath
        return FileManager.default.fileExists(atPath: ours) ? try SafeFile.read(ours) : nil
    }

    private var dataFolder: DataFolder {
        DataFolder(path: data ?? DataFolder.defaultPath)
    }
}
