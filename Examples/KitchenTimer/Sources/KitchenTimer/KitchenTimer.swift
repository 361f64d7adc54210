import ArgumentParser
import AsyncHTTPClient
import Foundation
import HeraldModel
import HeraldProvider

/// A kitchen timer for a family: the app on each device, and the family's server.
@main
struct KitchenTimer: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "KitchenTimer",
        abstract: "A kitchen timer for a family, with local, silent and remote notifications.",
        discussion: """
            The family's secret is in the environment variable KITCHEN_CODE, for the app and for the server.

            Examples:
              KitchenTimer server --certificate provider.pem --service localhost:2197 --ca herald-data/ca.pem
              KitchenTimer app --device herald-device --server http://127.0.0.1:8094
            """,
        subcommands: [AppCommand.self, ServerCommand.self]
    )

    /// The app that both commands serve, unless they are told otherwise.
    static let topic = "com.example.kitchen"

    /// The family's secret.
    static func code() throws -> String {
        guard let code = ProcessInfo.processInfo.environment["KITCHEN_CODE"], code.utf8.count >= 8,
            code.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else {
            throw ValidationError(
                "KITCHEN_CODE must be the family's secret: 8 or more ASCII characters, without spaces."
            )
        }
        return code
    }

    static func read(topic text: String) throws -> Topic {
        guard let topic = Topic(text) else {
            throw ValidationError("--topic must be an app, like \(Self.topic).")
        }
        return topic
    }

    static func check(port: Int) throws {
        guard 0...65_535 ~= port else { throw ValidationError("--port must be a port from 0 to 65535.") }
    }
}

/// `KitchenTimer app`: the app on a device.
struct AppCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "app",
        abstract: "Run the app on a device of this machine."
    )

    @Option(help: ArgumentHelp("The folder of the device: --folder of herald agent run.", valueName: "folder"))
    var device = "herald-device"

    @Option(help: ArgumentHelp("The family's server, like http://127.0.0.1:8094.", valueName: "address"))
    var server: String?

    @Option(help: ArgumentHelp("The port of the app's page; 0 picks a free one.", valueName: "port"))
    var port = 8095

    @Option(help: ArgumentHelp("The app.", valueName: "id"))
    var topic = KitchenTimer.topic

    func validate() throws {
        _ = try KitchenTimer.read(topic: topic)
        try KitchenTimer.check(port: port)
        if let server {
            guard ["http://", "https://"].contains(where: { server.hasPrefix($0) }) else {
                throw ValidationError("--server must be an address like http://127.0.0.1:8094.")
            }
            _ = try KitchenTimer.code()
        }
    }

    func run() async throws {
        var configuration = HTTPClient.Configuration()
        // The app itself tries again.
        configuration.connectionPool.retryConnectionEstablishment = false
        try await HTTPClient.withHTTPClient(configuration: configuration) { client in
            let family = try server.map { server in
                FamilyClient(
                    address: server.hasSuffix("/") ? String(server.dropLast()) : server,
                    code: try KitchenTimer.code(),
                    client: client
                )
            }
            let app = try KitchenApp(try KitchenTimer.read(topic: topic), device: device, family: family)
            try await KitchenHTTP.serve(
                KitchenPage(app: app).router(),
                name: "kitchen",
                port: port,
                beside: KitchenTask { try await app.run() }
            )
        }
    }
}

/// `KitchenTimer server`: the family's server, which is the app's provider.
struct ServerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "server",
        abstract: "Run the family's server, which sends the app's remote notifications."
    )

    @Option(help: ArgumentHelp("The provider's certificate, chain and key, in one file.", valueName: "file"))
    var certificate: String

    @Option(help: ArgumentHelp("The push service.", valueName: "host:port"))
    var service = "localhost:2197"

    @Option(help: ArgumentHelp("The authority of the push service; without it, the system's.", valueName: "file"))
    var ca: String?

    @Option(help: ArgumentHelp("The file that keeps devices and timers.", valueName: "file"))
    var file = "family.json"

    @Option(help: ArgumentHelp("The port; 0 picks a free one.", valueName: "port"))
    var port = 8094

    @Option(help: ArgumentHelp("The app.", valueName: "id"))
    var topic = KitchenTimer.topic

    func validate() throws {
        _ = (try KitchenTimer.read(topic: topic), try KitchenTimer.code(), try place())
        try KitchenTimer.check(port: port)
    }

    private func place() throws -> (host: String, port: Int) {
        guard let colon = service.lastIndex(of: ":"), let port = Int(service[service.index(after: colon)...]),
            1...65_535 ~= port, colon != service.startIndex
        else { throw ValidationError("--service must be a host and a port, like localhost:2197.") }
        return (String(service[..<colon]), port)
    }

    func run() async throws {
        let (host, servicePort) = try place()
        var configuration = ProviderConfiguration(
            host: host,
            port: servicePort,
            credential: .certificate(pem: try Self.bytes(certificate))
        )
        configuration.authorities = try ca.map { try Self.bytes($0) }
        // The cook waits for the answer.
        configuration.totalTimeout = .seconds(KitchenLimits.requestSeconds - 2)
        let (topic, code) = (try KitchenTimer.read(topic: topic), try KitchenTimer.code())
        try await withProviderClient(configuration) { client in
            let family = try Family(topic, file: file, client: client)
            try await KitchenHTTP.serve(
                FamilyRoutes(family: family, code: code).router(),
                name: "family",
                port: port,
                beside: KitchenTask { await family.run() }
            )
        }
    }

    private static func bytes(_ path: String) throws -> [UInt8] {
        do {
            return Array(try Data(contentsOf: URL(fileURLWithPath: path)))
        } catch {
            throw ValidationError("\(path) cannot be read.")
        }
    }
}
