import ArgumentParser
import Foundation
import HeraldDevice
import HeraldModel

/// `herald agent run`: connects, registers apps, and shows what comes.
struct AgentRun: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Connect, register apps, and show device tokens and notifications as they come.",
        discussion: """
            With --folder the device keeps its apps, its settings and what is shown there, and a
            notification is acknowledged once it is kept; each is shown once, whatever is killed
            when. Without, it keeps nothing, and its apps may do everything unless --allow says
            less.
            A new app of a device with a folder waits for permission: on the terminal, by
            --allow, or by `herald agent allow`; before that it is not registered.
            A connection that ends is made again, after a pause.
            Every option may also be a key of a YAML file (--config) or an environment
            variable: identity, HERALD_IDENTITY.

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
            "Where the device keeps what it keeps. (default: ./herald-device if a device was activated there)",
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
            "What the apps may do, of alert, badge and sound, or none; nobody is asked then.",
            valueName: "list"
        )
    )
    var allow: String?

    @Option(
        help: ArgumentHelp("The user's language; may be repeated, the dearest first. (default: en)", valueName: "code")
    )
    var language: [String] = []

    @OptionGroup var screen: AgentScreenOptions

    @OptionGroup var peer: PeerOptions

    @OptionGroup var reconnect: ReconnectOptions

    @Flag(help: "Show notifications on the desktop too, by the notification service of its session bus.")
    var desktop = false

    @Flag(help: "Print one line of JSON for each event.")
    var json = false

    func run() async throws {
        var peer = peer
        let settings = try peer.settings()
        try peer.complete(from: settings)
        let identity = try identity ?? settings.text(.identity)
        let folder = try keptFolder(settings, identity: identity)
        let apps = try (app.isEmpty ? settings.texts(.app) ?? [] : app).map { try AgentApp($0) }
        let allowed = try (allow ?? settings.text(.allow)).map { try AgentPermission.kinds($0) }
        let screen = try screen.configuration(settings)
        let languages = language.isEmpty ? try settings.texts(.language) ?? [] : language
        let showsDesktop = try desktop || settings.flag(.desktop) ?? false
        try await translatingDeviceErrors {
            let credential =
                try identity.map { try DeviceCredential(pem: try SafeFile.read($0)) }
                ?? (folder ?? AgentPlace(path: AgentPlace.defaultPath)).device.credential()
            let activated = try folder?.service(unless: peer)
            let place =
                try activated.map { HostPort(host: $0.host, port: $0.port) }
                ?? peer.service(defaultPort: 5223, door: \.device)
            var configuration = DeviceConfiguration(
                host: place.host,
                port: place.port,
                credential: credential,
                authorities: try folder.flatMap { try $0.authorities(unless: peer) } ?? peer.authorities()
            )
            configuration.serverName = activated?.serverName
            configuration.reconnection = try reconnect.limits(settings)
            let client = try DeviceClient(configuration)
            let agent = try DeviceAgent(
                line: client,
                device: credential.id.name,
                service: "\(place)",
                folder: folder?.path
            )
            if !languages.isEmpty {
                var switches = PhoneSwitches()
                switches.languages = languages
                try await agent.perform(.set(switches))
            }
            // A device that keeps nothing has nobody to ask.
            let kinds = allowed ?? (folder == nil ? Set(NotificationKind.allCases) : nil)
            for app in apps { try await app.install(on: agent, allow: kinds) }
            var running = AgentService(
                agent: agent,
                device: credential.id,
                json: json,
                folder: folder?.path,
                renewal: identity == nil ? AgentRenewal(path: folder?.path, client: client, json: json) : nil,
                screen: screen
            )
            if showsDesktop {
                let desktop = Desktop(agent) { Terminal.complain("herald: \($0)") }
                running.views.append { await desktop.run() }
            }
            try await running.runUntilSignalled()
        }
    }

    /// Where the device keeps what it keeps; nil for one that keeps nothing.
    private func keptFolder(_ settings: Settings, identity: String?) throws -> AgentPlace? {
        if let named = try folder ?? settings.text(.folder) {
            return AgentPlace(path: named)
        }
        guard identity == nil else { return nil }
        let usual = AgentPlace(path: AgentPlace.defaultPath)
        guard usual.device.isActivated else {
            throw ValidationError("Missing expected argument '--identity <file>', or '--folder <folder>'")
        }
        return usual
    }
}

/// An app as it is named on the command line.
struct AgentApp {
    private enum Kind {
        case bundle(String)
        case topic(Topic)
    }

    private let kind: Kind

    /// A bundle's folder if it looks like one, else a topic.
    init(_ text: String) throws {
        if text.contains("/") || FileManager.default.fileExists(atPath: text + "/Info.plist") {
            kind = .bundle(text)
        } else if let topic = Topic(text) {
            kind = .topic(topic)
        } else {
            throw ValidationError("'\(LogText.escaped(text, limit: 64))' is not an app, like com.example.app.")
        }
    }

    func install(on agent: DeviceAgent, allow: Set<NotificationKind>?) async throws {
        switch kind {
        case .bundle(let path): try await agent.install(bundle: path, allow: allow)
        case .topic(let topic): try await agent.install(topic: topic, allow: allow)
        }
    }
}

/// What an app may do, as it is written on the command line.
enum AgentPermission {
    static func kinds(_ text: String) throws -> Set<NotificationKind> {
        if text == "none" { return [] }
        let kinds = text.split(separator: ",").map {
            NotificationKind(rawValue: $0.trimmingCharacters(in: .whitespaces))
        }
        guard !kinds.isEmpty, !kinds.contains(nil) else {
            throw ValidationError(
                "'\(LogText.escaped(text, limit: 64))' is not a list of alert, badge and sound, like alert,sound, and not none."
            )
        }
        return Set(kinds.compactMap { $0 })
    }
}
