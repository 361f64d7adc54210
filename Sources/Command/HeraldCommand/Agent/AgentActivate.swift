import ArgumentParser
import HeraldDevice
import HeraldModel
import HeraldService

/// `herald agent activate`: makes this machine a device of a service, with an invitation code.
struct AgentActivate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "activate",
        abstract: "Make this machine a device of a service, with a code of `herald device invite`.",
        discussion: """
            The device creates its own key, which never leaves its folder. The code identifies the service: \
            nothing is sent to any other server.

            Service, code and folder may also be keys of a YAML file (--config) or environment variables. \
            With HERALD_CODE, others cannot see the code in the list of processes.

            Example:
              export HERALD_CODE=QE370-66QYX-63696-B4MHP-SADJC-4R4MC-5BDH6-DN6NJ-2KPYP
              herald agent activate --service https://push.example.com:2191
            """
    )

    @Option(help: ArgumentHelp("The service's activation listener.", valueName: "url"))
    var service: String?

    @Option(help: ArgumentHelp("The invitation code.", valueName: "code"))
    var code: String?

    @OptionGroup var options: AgentFolderOptions

    @Option(
        help: ArgumentHelp(
            "The device's name; that of the invitation comes before it. (default: this machine's name)",
            valueName: "text"
        )
    )
    var name: String?

    @Option(help: ArgumentHelp("The service's device port. (default: the service names it)", valueName: "port"))
    var devicePort: Int?

    @Flag(help: "Replace an identity in the folder. Apps and settings stay.")
    var replace = false

    @Flag(help: "Print JSON.")
    var json = false

    func validate() throws {
        guard devicePort.map({ (1...65_535).contains($0) }) ?? true else {
            throw ValidationError("--device-port is a number from 1 to 65535.")
        }
    }

    func run() async throws {
        let settings = try options.settings()
        guard let service = try service ?? settings.text(.service) else {
            throw ValidationError("Missing expected argument '--service <url>'")
        }
        guard let code = try code ?? settings.text(.code) else {
            throw ValidationError("Missing expected argument '--code <code>'")
        }
        let folder = try options.folder(settings)
        var activation = DeviceActivation(service: try ServiceAddress(service), folder: folder)
        activation.name = name
        activation.devicePort = try devicePort ?? settings.number(.devicePort, in: 1...65_535)
        activation.service.compare(devicePort: activation.devicePort)
        activation.replaces = replace
        let credential = try await activation.activate(code: code)
        if let port = activation.devicePort, try folder.service().announced.allSatisfy({ $0.port != port }) {
            Terminal.complain(
                "herald: the service announces its addresses, so device-port \(port) does not count: "
                    + "`herald agent run --device-port \(port)` comes before them"
            )
        }
        try report(credential, folder)
    }

    private func report(_ credential: DeviceCredential, _ folder: DeviceFolder) throws {
        let report = try ActivationReport(credential, folder)
        if json { return try Terminal.sayJSON(report) }
        Terminal.say("device   \(credential.id)")
        Terminal.say("service  \(report.service)")
        Terminal.say("folder   \(folder.path)")
        Terminal.say("next     herald agent run --folder \(folder.path) --app com.example.app")
    }
}

extension ServiceAddress {
    /// Says on standard error if the two settings for ports name one, which is one of the two by mistake.
    func compare(devicePort: Int?) {
        guard devicePort == port else { return }
        Terminal.complain(
            "herald: service and device-port name the same port, \(port): service is the activation listener "
                + "(\(ServiceAddress.defaultPort), unless the service has another), and device-port its port for devices (5223)"
        )
    }
}

/// `herald agent renew`: renews the certificate now.
struct AgentRenew: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "renew",
        abstract: "Renew the device's certificate now, with a new key.",
        discussion: """
            A running agent renews by itself, at two thirds of the certificate's life. The former certificate stays \
            valid until it expires.

            Example:
              herald agent renew --folder ./herald-device
            """
    )

    @OptionGroup var options: AgentFolderOptions

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        let folder = try options.folder(try options.settings())
        let credential = try await folder.renew()
        if json { return try Terminal.sayJSON(ActivationReport(credential, folder)) }
        Terminal.say("device \(credential.id) has a new certificate")
    }
}

/// The options that name the device's folder.
struct AgentFolderOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The device's folder. (default: ./herald-device)", valueName: "folder"))
    var folder: String?

    @Option(help: ArgumentHelp("A YAML file with these options as keys.", valueName: "file"))
    var config: String?

    /// The settings from the environment and the configuration file.
    /// - Throws: ``CommandError/Code/configuration``.
    func settings() throws -> Settings {
        try Settings(file: config)
    }

    func folder(_ settings: Settings) throws -> DeviceFolder {
        DeviceFolder(try folder ?? settings.text(.folder) ?? DeviceFolder.defaultPath)
    }
}

/// The result of an activation, as JSON.
private struct ActivationReport: Encodable {
    let id: String
    let service: String
    let folder: String
    let identity: String
    let ca: String

    init(_ credential: DeviceCredential, _ folder: DeviceFolder) throws {
        id = credential.id.name
        let address = try folder.service().addresses[0]
        service = HostPort(host: address.host, port: address.port).description
        self.folder = folder.path
        identity = folder.identityPath
        ca = folder.authorityPath
    }
}
