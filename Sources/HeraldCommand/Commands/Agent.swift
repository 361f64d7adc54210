import ArgumentParser
import Foundation
import HeraldDevice
import HeraldModel
import Logging
import ServiceLifecycle
import UnixSignals

/// `herald agent`: a device made of software.
struct Agent: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Be a device.",
        discussion: """
            Example:
              herald agent run --identity kitchen.pem --app com.example.chat
            """,
        subcommands: [AgentRun.self]
    )
}

/// `herald agent run`: connects, registers apps, and prints what comes.
struct AgentRun: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Connect, register apps, and print device tokens and notifications as they come.",
        discussion: """
            A notification is acknowledged once it is printed. A connection that ends is made again, after a pause.
            Every option may also be a key of a YAML file (--config) or an environment
            variable: identity, HERALD_IDENTITY.

            Example:
              herald agent run --identity kitchen.pem \\
                --app com.example.chat --app com.example.chat.voip
            """
    )

    @Option(
        help: ArgumentHelp("The device's certificate, chain and key, PEM (`herald device enroll`).", valueName: "file")
    )
    var identity: String?

    @Option(help: ArgumentHelp("An app to register: its topic; may be repeated.", valueName: "id"))
    var app: [String] = []

    @OptionGroup var peer: PeerOptions

    @OptionGroup var reconnect: ReconnectOptions

    @Flag(help: "Print one line of JSON for each event.")
    var json = false

    func run() async throws {
        var peer = peer
        let settings = try peer.settings()
        try peer.complete(from: settings)
        guard let identity = try identity ?? settings.text(.identity) else {
            throw ValidationError("Missing expected argument '--identity <file>'")
        }
        let app = app.isEmpty ? try settings.texts(.app) ?? [] : app
        let place = try peer.service(defaultPort: 5223, door: \.device)
        let apps = try app.map { text in
            guard let topic = Topic(text) else {
                throw ValidationError("'\(LogText.escaped(text, limit: 64))' is not an app, like com.example.app.")
            }
            return topic
        }
        do {
            let credential = try DeviceCredential(pem: SafeFile.read(identity))
            var configuration = DeviceConfiguration(
                host: place.host,
                port: place.port,
                credential: credential,
                authorities: try peer.authorities(),
                apps: apps
            )
            configuration.reconnection = try reconnect.limits(settings)
            let client = try DeviceClient(configuration)
            try await AgentService(client: client, device: credential.id, json: json).runUntilSignalled()
        } catch let error as DeviceError {
            throw CommandError(error.code == .refused ? .refused : .file, error.message)
        }
    }
}

/// A device's client that prints, and stops when it is asked to.
struct AgentService: Service {
    let client: DeviceClient
    let device: DeviceID
    let json: Bool

    func run() async throws {
        try await cancelWhenGracefulShutdown {
            do {
                try await client.run { event in
                    if json {
                        Terminal.say(AgentReport.json(event, device: device))
                    } else {
                        for line in AgentReport.lines(event, device: device) { Terminal.say(line) }
                    }
                }
            } catch is CancellationError {
                // Asked to stop.
            }
        }
    }

    /// Runs until SIGINT or SIGTERM, or until the service refuses the device.
    func runUntilSignalled() async throws {
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: [.init(service: self, successTerminationBehavior: .gracefullyShutdownGroup)],
                gracefulShutdownSignals: [.sigterm, .sigint],
                logger: Logger(label: "herald.agent") { _ in SwiftLogNoOpLogHandler() }
            )
        )
        try await group.run()
    }
}
