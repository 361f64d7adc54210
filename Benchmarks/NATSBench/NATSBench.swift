import ArgumentParser
import Foundation
import HeraldNATS
import Logging
import NIOCore
import NIOPosix

/// The NATS client as a program of its own, for the figures and for the interop tests.
@main
struct NATSBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "nats-bench",
        subcommands: [MakeStream.self, PublishBench.self, Drive.self]
    )
}

/// Options of a connection.
struct ConnectionOptions: ParsableArguments {
    @Option(help: "Address of a server; repeat it for each.") var server: [String]
    @Option(help: "User and password, with a colon between them.") var user: String?
    @Option(help: "Token.") var token: String?
    @Option(help: "File with an nkey's seed.") var nkey: String?
    @Option(help: "File with a JWT and its seed.") var creds: String?
    @Option(help: "File with the authorities to trust; TLS is then demanded.") var ca: String?
    @Option(help: "File with the client's certificate.") var certificate: String?
    @Option(help: "File with the key of the client's certificate.") var key: String?
    @Option(help: "Name to expect in the server's certificate.") var serverName: String?
    @Flag(help: "TLS begins before the server's INFO.") var tlsFirst = false
    @Option(help: "Bytes that may wait for the socket.") var pendingBytes: Int?
    @Option(help: "Requests that may wait for an answer.") var requests: Int?

    func settings() throws -> NATSConfiguration {
        var credential = NATSCredential.none
        if let user {
            let parts = user.split(separator: ":", maxSplits: 1).map(String.init)
            guard parts.count == 2 else { throw ValidationError("--user NAME:PASSWORD") }
            credential = .password(user: parts[0], password: parts[1])
        }
        if let token { credential = .token(token) }
        if let nkey {
            let seed = String(decoding: try read(nkey), as: UTF8.self)
            credential = .nkey(try NKey(seed: seed.trimmingCharacters(in: .whitespacesAndNewlines)))
        }
        if let creds { credential = try NATSCredential(creds: String(decoding: try read(creds), as: UTF8.self)) }
        var configuration = NATSConfiguration(
            servers: try server.map { try NATSServerAddress($0) },
            name: "nats-bench",
            credential: credential
        )
        if ca != nil || certificate != nil || tlsFirst {
            var tls = NATSTLS(
                authorities: try ca.map(read),
                certificates: try certificate.map(read),
                key: try key.map(read)
            )
            tls.serverName = serverName
            tls.isFirst = tlsFirst
            configuration.tls = tls
        }
        if let pendingBytes { configuration.limits.pendingBytes = pendingBytes }
        if let requests { configuration.limits.requests = requests }
        return configuration
    }

    private func read(_ path: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(filePath: path)))
    }

    /// A connection on a loop of its own.
    func connection(
        onEvent: @escaping @Sendable (NATSConnection.Event) -> Void
    ) throws -> NATSConnection {
        try NATSConnection(
            settings(),
            on: MultiThreadedEventLoopGroup.singleton.next(),
            logger: Logger(label: "nats", factory: { _ in SwiftLogNoOpLogHandler() }),
            onEvent: onEvent
        )
    }

    /// A connection that a server has accepted.
    func connected() async throws -> NATSConnection {
        let (stream, connected) = AsyncStream.makeStream(of: Void.self)
        let connection = try connection { event in
            if case .connected = event { connected.finish() }
        }
        connection.start()
        for await _ in stream {}
        return connection
    }
}
