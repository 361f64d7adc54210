import ArgumentParser
import Foundation
import HeraldModel
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import ServiceLifecycle

/// The server of the chat.
@main
struct PushChat: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "PushChat",
        abstract: "The server of a chat with push notifications.",
        discussion: """
            It puts notifications into the queue of `herald relay run`. Start the relay first: \
            it creates the tables.

            Example:
              PushChat --database chat.db --queue relay.db --port 8080
            """
    )

    @Option(help: ArgumentHelp("The chat's own file, created if it is missing.", valueName: "file"))
    var database = "pushchat.db"

    @Option(help: ArgumentHelp("The relay's file: the path in its --database.", valueName: "file"))
    var queue: String

    @Option(help: ArgumentHelp("The app.", valueName: "id"))
    var topic = "com.example.pushchat"

    @Option(help: ArgumentHelp("The address to listen on.", valueName: "address"))
    var host = "127.0.0.1"

    @Option(help: ArgumentHelp("The port; 0 picks a free one.", valueName: "port"))
    var port = 8080

    @Option(
        help: ArgumentHelp(
            "The address that a proxy gives the server, like https://chat.example.com.",
            valueName: "address"
        )
    )
    var site: String?

    @Option(help: ArgumentHelp("How often to remove users whose app was removed.", valueName: "seconds"))
    var sweepEvery = 2

    func validate() throws {
        guard Topic(topic) != nil else { throw ValidationError("--topic must be an app, like com.example.pushchat") }
        guard 0...65535 ~= port else { throw ValidationError("--port must be a port from 0 to 65535") }
        guard site.map({ ChatSite($0) != nil }) ?? true else {
            throw ValidationError("--site must be an address without a path, like https://chat.example.com")
        }
        guard 1...86_400 ~= sweepEvery else { throw ValidationError("--sweep-every must be seconds from 1 to 86400") }
    }

    func run() async throws {
        guard let topic = Topic(topic) else { return }
        let store = try ChatStore(path: database, queue: queue, topic: topic)
        var logger = Logger(label: "pushchat") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .warning
        let router = Router(context: BasicRequestContext.self)
        router.add(middleware: ChatFailures(logger: logger))
        router.add(middleware: ChatGuard(host: host, site: site.flatMap { ChatSite($0) }))
        ChatRoutes(store: store).add(to: router)
        let host = host
        let port = port
        let place = host.contains(":") ? "[\(host)]" : host
        var application = Application(
            router: router,
            server: .http1(configuration: HTTP1Channel.Configuration(idleTimeout: .seconds(store.limits.idleSeconds))),
            configuration: ApplicationConfiguration(
                address: .hostname(host, port: port),
                serverName: "pushchat",
                availableConnectionsDelegate: .maximum(store.limits.connections, logger: logger)
            ),
            onServerRunning: { channel in
                say("pushchat http://\(place):\(channel.localAddress?.port ?? port)/")
                say("ready")
            },
            logger: logger
        )
        application.addServices(Sweep(store: store, pause: .seconds(sweepEvery), logger: logger))
        do {
            try await application.runService()
        } catch let error as IOError {
            let why = String(cString: strerror(error.errnoCode))
            throw ChatRefusal(.serviceUnavailable, "cannot listen on \(place):\(port): \(why)")
        }
    }
}

/// Removes users whose app was removed, at intervals.
struct Sweep: Service {
    let store: ChatStore
    let pause: Duration
    let logger: Logger

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                do {
                    let count = try await store.forgetDead()
                    if count > 0 { say("\(count) left: their app is gone") }
                    try await Task.sleep(for: pause)
                } catch is CancellationError {
                    return
                } catch {
                    logger.warning("cannot look for removed apps", metadata: ["error": "\(type(of: error))"])
                    try? await Task.sleep(for: pause)
                }
            }
        }
    }
}

/// Writes a line without buffering.
private func say(_ line: String) {
    print(line)
    fflush(nil)
}
