import ArgumentParser
import Foundation
import HeraldDesktop
import HeraldDevice
import HeraldModel
import HeraldPhone
import HeraldScreen
import HeraldService

/// `herald agent run`: runs a simulated device.
struct AgentRun: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Connect, register apps, and show device tokens and notifications.",
        discussion: """
            With --folder, the device keeps its apps, settings and notifications. It acknowledges a notification \
            once it is on disk, and shows it exactly once. Without --folder, it keeps nothing, and its apps have all \
            permissions unless --allow limits them.

            A new app of a device with a folder needs permission before it is registered: on the terminal, with --allow, \
            or with `herald agent allow`.

            When a connection ends, the device connects again after a pause.

            --service names the activation listener, as for `herald agent activate`, and comes before the addresses that \
            the folder knows; --device-port names the port for devices there.

            Every option may also be a key of a YAML file (--config) or an environment variable: identity, \
            HERALD_IDENTITY.

            Example:
              herald agent run --identity kitchen.pem \\
                --app com.example.chat --app com.example.chat.voip
              herald agent run --folder kitchen --app ./Monopoly.app --language fr
              herald agent run --identity kitchen.pem --app com.example.chat --screen 8080
            """
    )

    @Option(
        help: ArgumentHelp(
            "The device's certificate, chain and key, PEM (`herald device enroll`). (default: identity.pem of the folder)",
            valueName: "file"
        )
    )
    var identity: String?

    @Option(
        help: ArgumentHelp(
            "The device's folder. (default: ./herald-device if a device was activated there)",
            valueName: "folder"
        )
    )
    var folder: String?

    @Option(
        help: ArgumentHelp(
            "An app to install: its bundle's folder, or its topic alone; may be repeated.",
            valueName: "folder|id"
        )
    )
    var app: [String] = []

    @Option(
        help: ArgumentHelp(
            "The permission of the apps: alert, badge and sound, separated by commas; or none. Then the agent does not ask.",
            valueName: "list"
        )
    )
    var allow: String?

    @Option(
        help: ArgumentHelp(
            "The user's language; may be repeated, in order of preference. (default: en)",
            valueName: "code"
        )
    )
    var language: [String] = []

    @OptionGroup var screen: AgentScreenOptions

    @OptionGroup var peer: PeerOptions

    @Option(
        help: ArgumentHelp(
            "The service's device port. (default: that of the activation, else 5223)",
            valueName: "port"
        )
    )
    var devicePort: Int?

    @OptionGroup var reconnect: ReconnectOptions

    @Flag(help: "Show notifications on the desktop too, through the notification service of the session bus.")
    var desktop = false

    @Flag(help: "Print one line of JSON for each event.")
    var json = false

    func run() async throws {
        let manager = ServiceManager(environment: ProcessInfo.processInfo.environment)
        manager.starting("starting")
        var peer = peer
        let settings = try peer.settings()
        try peer.complete(from: settings)
        let identity = try identity ?? settings.text(.identity)
        let folder = try keptFolder(settings, identity: identity)
        let apps = try (app.isEmpty ? settings.texts(.app) ?? [] : app).map { try AgentApp($0) }
        let allowed = try (allow ?? settings.text(.allow)).map { try AgentPermission.kinds($0) }
        var screen = try screen.configuration(settings)
        let languages = language.isEmpty ? try settings.texts(.language) ?? [] : language
        let showsDesktop = try desktop || settings.flag(.desktop) ?? false
        let credential =
            try identity.map { try DeviceCredential(pem: try SafeFile.read($0, isSecret: true)) }
            ?? (folder ?? AgentFolderPath(path: AgentFolderPath.defaultPath)).device.credential()
        let device = identity == nil ? folder?.device : nil
        let port = try devicePort ?? settings.number(.devicePort, in: 1...65_535)
        let (place, isActivated) = try place(of: device, peer, port: port)
        let address = place.service
        var configuration = DeviceConfiguration(
            host: place.address ?? address.host,
            port: address.port,
            credential: credential,
            authorities: try peer.authorities()
        )
        screen?.sendLine = AgentScreen.sendLine(host: address.host)
        if isActivated {
            configuration.folder = device
            configuration.environment = peer.environment ?? .production
        } else if place.address != nil {
            configuration.serverName = address.host
        }
        configuration.reconnection = try reconnect.limits(settings)
        let client = try DeviceClient(configuration)
        let agent = try await FolderWait().untilFree {
            try DeviceAgent(
                connection: client,
                device: credential.id.name,
                service: "\(address)",
                folder: folder?.path
            )
        }
        if !languages.isEmpty {
            var switches = PhoneSwitches()
            switches.languages = languages
            try await agent.perform(.set(switches))
        }
        // A device without a folder cannot ask the user.
        let kinds = allowed ?? (folder == nil ? Set(NotificationKind.allCases) : nil)
        for app in apps { try await app.install(on: agent, allow: kinds) }
        if await agent.snapshot().apps.isEmpty {
            Terminal.complain("herald: no app is registered, so nothing can arrive: name one with --app")
        }
        var running = AgentService(
            agent: agent,
            device: credential.id,
            json: json,
            folder: folder?.path,
            renewal: identity == nil ? AgentRenewal(path: folder?.path, client: client, json: json) : nil,
            manager: manager,
            screen: screen
        )
        if showsDesktop {
            let desktop = Desktop(agent, before: await agent.snapshot()) { Terminal.complain("herald: \($0)") }
            running.views.append { await desktop.run() }
        }
        try await running.runUntilSignalled()
    }

    /// The service, and whether the device's folder knows it: then the client follows what the service announces.
    private func place(
        of device: DeviceFolder?,
        _ peer: PeerOptions,
        port: Int?
    ) throws -> (PeerOptions.Place, isActivated: Bool) {
        let service = try peer.service.map { try ServiceAddress($0) }
        if let device, device.isActivated, peer.data == nil, peer.ca == nil {
            var known = try device.service().addresses[0]
            if service != nil || port != nil {
                let service = service ?? ServiceAddress(host: known.host, port: known.activation)
                try device.prefer(service, port: port)
                known = try device.service().addresses[0]
                service.compare(devicePort: known.port)
            } else {
                try device.prefer(nil, port: nil)
            }
            let host = try peer.name(known.host)
            return (PeerOptions.Place(service: HostPort(host: host, port: known.port)), true)
        }
        guard let service else {
            return (try peer.service(defaultPort: port ?? 5223, listener: \.device), false)
        }
        guard port != nil || service.port == ServiceAddress.defaultPort else {
            throw ValidationError(
                "--service names the activation listener, and this device was not activated: name the port for devices with "
                    + "--device-port."
            )
        }
        service.compare(devicePort: port)
        return (PeerOptions.Place(service: HostPort(host: try peer.name(service.host), port: port ?? 5223)), false)
    }

    /// The device's folder; nil for a device that keeps nothing.
    private func keptFolder(_ settings: Settings, identity: String?) throws -> AgentFolderPath? {
        if let named = try folder ?? settings.text(.folder) {
            return AgentFolderPath(path: named)
        }
        guard identity == nil else { return nil }
        let usual = AgentFolderPath(path: AgentFolderPath.defaultPath)
        guard usual.device.isActivated else {
            throw ValidationError("Missing expected argument '--identity <file>', or '--folder <folder>'")
        }
        return usual
    }
}

/// An app on the command line.
struct AgentApp {
    private enum Kind {
        case bundle(String)
        case topic(Topic)
    }

    private let kind: Kind

    /// Reads the folder of a bundle, or a topic.
    init(_ text: String) throws {
        if text.contains("/") || FileManager.default.fileExists(atPath: text + "/Info.plist") {
            kind = .bundle(text)
        } else {
            kind = .topic(try AgentTopic.read(text))
        }
    }

    func install(on agent: DeviceAgent, allow: Set<NotificationKind>?) async throws {
        switch kind {
        case .bundle(let path): try await agent.install(bundle: path, allow: allow)
        case .topic(let topic): try await agent.install(topic: topic, allow: allow)
        }
    }
}

/// Reads a permission from the command line.
enum AgentPermission {
    static func kinds(_ text: String) throws -> Set<NotificationKind> {
        if text == "none" { return [] }
        let kinds = text.split(separator: ",").map {
            NotificationKind(rawValue: $0.trimmingCharacters(in: .whitespaces))
        }
        guard !kinds.isEmpty, !kinds.contains(nil) else {
            throw ValidationError(text, isNot: "a list of alert, badge and sound, like alert,sound, or none")
        }
        return Set(kinds.compactMap { $0 })
    }

    static func style(_ text: String) throws -> AlertStyle {
        guard let style = AlertStyle(rawValue: text) else {
            throw ValidationError("--style is banner, alert or none.")
        }
        return style
    }
}
