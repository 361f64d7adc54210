import ArgumentParser
import Foundation
import HeraldDevice
import HeraldModel

/// `herald agent activate`: becomes a device of a service, with an invitation code.
struct AgentActivate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "activate",
        abstract: "Become a device of a service, with a code of `herald device invite`.",
        discussion: """
            The device makes its own key, which never leaves its folder. The code says which
            service is the right one: another one is told nothing. Service, code and folder
            may also be keys of a YAML file (--config) or environment variables, so that a
            code need not be typed where others see it: HERALD_CODE.

            Example:
              herald agent activate --service https://push.example.com:2191 \\
                --code QE370-66QYX-63696-B4MHP-SADJC-4R4MC-5BDH6-DN6NJ-2KPYP
            """
    )

    @Option(help: ArgumentHelp("The service's activation door.", valueName: "url"))
    var service: String?

    @Option(help: ArgumentHelp("The invitation code.", valueName: "code"))
    var code: String?

    @OptionGroup var place: AgentFolderOptions

    @Option(
        help: ArgumentHelp(
            "What people call the device, if the invitation does not say. (default: this machine's name)",
            valueName: "text"
        )
    )
    var name: String?

    @Option(help: ArgumentHelp("The port where devices connect. (default: what the service says)", valueName: "port"))
    var devicePort: Int?

    @Flag(help: "Lose the identity that is in the folder, if there is one. Apps and settings stay.")
    var replace = false

    @Flag(help: "Print JSON.")
    var json = false

    func validate() throws {
        guard devicePort.map({ (1...65_535).contains($0) }) ?? true else {
            throw ValidationError("--device-port is a number from 1 to 65535.")
        }
    }

    func run() async throws {
        let settings = try place.settings()
        guard let service = try service ?? settings.text(.service) else {
            throw ValidationError("Missing expected argument '--service <url>'")
        }
        guard let code = try code ?? settings.text(.code) else {
            throw ValidationError("Missing expected argument '--code <code>'")
        }
        let folder = try place.folder(settings)
        do {
            var activation = DeviceActivation(service: try ServiceAddress(service), folder: folder)
            activation.name = name
            activation.devicePort = devicePort
            activation.replaces = replace
            let credential = try await activation.activate(code: code)
            try tell(credential, folder)
        } catch let error as EnrollmentError {
            throw CommandError(error)
        } catch let error as DeviceError {
            throw CommandError(.file, error.message)
        }
    }

    private func tell(_ credential: DeviceCredential, _ folder: DeviceFolder) throws {
        let service = try folder.service()
        let connection = HostPort(host: service.host, port: service.port).description
        if json {
            return try Terminal.sayJSON(AgentReceipt(id: credential.id.name, service: connection, folder: folder))
        }
        Terminal.say("device   \(credential.id)")
        Terminal.say("service  \(connection)")
        Terminal.say("folder   \(folder.path)")
        Terminal.say("next     herald agent run --folder \(folder.path) --app com.example.app")
    }
}

/// `herald agent renew`: gets the next certificate now.
struct AgentRenew: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "renew",
        abstract: "Get the device's next certificate now, with a new key.",
        discussion: """
            An agent that runs does it by itself, at two thirds of the certificate's life. The
            certificate before stays good until its own end.

            Example:
              herald agent renew --folder ./herald-device
            """
    )

    @OptionGroup var place: AgentFolderOptions

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        let folder = try place.folder(try place.settings())
        do {
            let credential = try await folder.renew()
            let service = try folder.service()
            let connection = HostPort(host: service.host, port: service.port).description
            if json {
                return try Terminal.sayJSON(AgentReceipt(id: credential.id.name, service: connection, folder: folder))
            }
            Terminal.say("device \(credential.id) has its next certificate")
        } catch let error as EnrollmentError {
            throw CommandError(error)
        } catch let error as DeviceError {
            throw CommandError(.file, error.message)
        }
    }
}

/// Which folder holds the device.
struct AgentFolderOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The device's folder. (default: ./herald-device)", valueName: "folder"))
    var folder: String?

    @Option(help: ArgumentHelp("A YAML file with these options as keys.", valueName: "file"))
    var config: String?

    /// What the environment and the configuration file say.
    /// - Throws: ``CommandError/Code/configuration``.
    func settings(environment: [String: String] = ProcessInfo.processInfo.environment) throws -> Settings {
        try Settings(commandLine: [:], environment: environment, file: config)
    }

    func folder(_ settings: Settings) throws -> DeviceFolder {
        DeviceFolder(try folder ?? settings.text(.folder) ?? DeviceFolder.defaultPath)
    }
}

/// What an activation came to, as JSON.
private struct AgentReceipt: Encodable {
    let id: String
    let service: String
    let folder: String
    let identity: String
    let ca: String

    init(id: String, service: String, folder: DeviceFolder) {
        self.id = id
        self.service = service
        self.folder = folder.path
        identity = folder.identityPath
        ca = folder.authorityPath
    }
}

extension CommandError {
    /// Why a device has no certificate.
    init(_ error: EnrollmentError) {
        let code: Code =
            switch error.code {
            case .unreachable: .unreachable
            case .folder: .folder
            default: .refused
            }
        self.init(code, error.message)
    }
}
