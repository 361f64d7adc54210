import Foundation
package import HeraldNATS
import Logging
import NIOPosix
import Synchronization

/// The NATS server that the tests of this process share; it ends with the process, whose pipe it reads.
package final class NATSServer: Sendable {
    package static let shared = NATSServer()

    private struct Running {
        let port: Int
        let pipe: Pipe
        var accounts = 0
    }

    private struct DoesNotStart: Error {}

    private let state = Mutex<Running?>(nil)

    /// The port of the server, where a connection without a user gets an account of its own.
    package func port() throws -> Int {
        try state.withLock { state in
            let running = try state ?? NATSServer.start()
            state = running
            return running.port
        }
    }

    /// A connection to an account without streams, when it is up.
    package func connection() async throws -> NATSConnection {
        let (port, account) = try state.withLock { state in
            var running = try state ?? NATSServer.start()
            defer {
                running.accounts += 1
                state = running
            }
            return (running.port, "a\(running.accounts)")
        }
        var configuration = NATSConfiguration(
            servers: [NATSServerAddress(host: "127.0.0.1", port: port)],
            name: account,
            credential: .password(user: account, password: account)
        )
        configuration.limits.connectTimeout = .patience
        configuration.limits.pingInterval = .patience
        let (connected, isConnected) = AsyncStream.makeStream(of: Void.self)
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let connection = try NATSConnection(
            configuration,
            on: loop,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        ) { event in
            if case .connected = event { isConnected.yield() }
        }
        connection.start()
        for await _ in connected { break }
        return connection
    }

    private static func start() throws -> Running {
        let process = Process()
        let (input, output) = (Pipe(), Pipe())
        process.executableURL = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("nats-server")
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        var line = ""
        while !line.hasSuffix("\n") {
            let bytes = output.fileHandleForReading.availableData
            guard !bytes.isEmpty else { throw DoesNotStart() }
            line += String(decoding: bytes, as: UTF8.self)
        }
        guard let port = Int(line.dropLast()) else { throw DoesNotStart() }
        return Running(port: port, pipe: input)
    }
}
