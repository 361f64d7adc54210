import ArgumentParser
import Foundation
import HeraldModel
import HeraldProvider
import HeraldService

/// The service of a client command, and the authority that it trusts.
///
/// ``complete(from:)`` adds what was not typed from the environment and the configuration file.
struct PeerOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The service. (default: the one that runs on the data folder, else localhost)",
            valueName: "host:port"
        )
    )
    var service: String?

    @Option(
        help: ArgumentHelp(
            "production or sandbox; sandbox connects by the name sandbox.<host>. (default: by the service's name)",
            valueName: "environment"
        ),
        transform: PeerOptions.environment
    )
    var environment: PushEnvironment?

    @Option(
        help: ArgumentHelp(
            "The authority to trust, PEM. (default: ca.pem of the data folder, else the system's)",
            valueName: "file"
        )
    )
    var ca: String?

    @Option(help: ArgumentHelp("The service's data folder. (default: ./herald-data)", valueName: "folder"))
    var data: String?

    @Option(help: ArgumentHelp("A YAML file with these options as keys.", valueName: "file"))
    var config: String?

    /// The settings of the environment and the configuration file.
    /// - Throws: ``CommandError/Code/configuration``.
    func settings(environment: [String: String] = ProcessInfo.processInfo.environment) throws -> Settings {
        try Settings(environment: environment, file: config)
    }

    /// Adds the options that were not typed.
    /// - Throws: ``CommandError`` if a setting is wrong, or there is no folder at the path that was named.
    mutating func complete(from settings: Settings) throws {
        service = try service ?? settings.text(.service)
        ca = try ca ?? settings.text(.ca)
        data = try data ?? settings.text(.data)
        environment = try environment ?? settings.text(.environment).map(PeerOptions.environment)
        if let data, service == nil || ca == nil, access(data, F_OK) != 0 { throw DataFolder.missing(data) }
    }

    /// A service to connect to.
    struct Place {
        /// The name that its certificate must have, and the port.
        let service: HostPort
        /// The address to connect to; nil for that of the name.
        var address: String?
    }

    /// The service: the named one, else the listener of the service on the data folder, else the listener's default port on
    /// this machine.
    func service(defaultPort: Int, listener: KeyPath<ListeningAddresses, Int?>) throws -> Place {
        if let service {
            guard let place = HostPort(service, defaultPort: defaultPort) else {
                throw ValidationError(
                    "'\(LogText.shown(service))' is not a host and a port, like "
                        + "\(HostPort.example(insteadOf: service, port: defaultPort))."
                )
            }
            return Place(service: HostPort(host: try name(place.host), port: place.port))
        }
        guard let running = ListeningAddresses.read(from: dataFolder) else {
            return Place(service: HostPort(host: try name("localhost"), port: defaultPort))
        }
        // Every certificate of Herald's own has the name for the sandbox.
        let own = environment == .sandbox && NumericAddress(running.name) != nil ? "localhost" : running.name
        return Place(
            service: HostPort(host: try name(own), port: running[keyPath: listener] ?? defaultPort),
            address: NumericAddress.reachable(running.host)
        )
    }

    /// The name of a host in the chosen environment: a service knows the environment by the name that a client asks for.
    func name(_ host: String) throws -> String {
        guard let name = (environment ?? .production).serverName(of: host) else {
            throw ValidationError("--environment sandbox needs a host name in --service, and \(host) is an address.")
        }
        return name
    }

    /// The certificates of the authorities to trust, PEM; nil for the system's.
    func authorities() throws -> [UInt8]? {
        if let ca { return try SafeFile.read(ca) }
        let path = dataFolder.authorityPath
        return FileManager.default.fileExists(atPath: path) ? try SafeFile.read(path) : nil
    }

    /// The error of a connection that failed, with the usual remedy if no authority was given.
    func error(_ error: ProviderError) -> CommandError {
        let isUnknown = error.code == .untrusted && (try? authorities()) == nil
        let remedy = isUnknown ? ": give its ca.pem with --ca, or its folder with --data" : ""
        return CommandError(.unreachable, error.message + remedy)
    }

    private static func environment(_ text: String) throws -> PushEnvironment {
        guard let environment = PushEnvironment(rawValue: text) else {
            throw SettingKey.environment.refusal(text, "production or sandbox")
        }
        return environment
    }

    var dataFolder: DataFolder {
        DataFolder(path: data ?? DataFolder.defaultPath)
    }
}
