import Foundation
import HeraldCluster
import HeraldModel
import HeraldNATS
import Logging
import NIOPosix
import Synchronization

/// The NATS server that the tests of this process share; it ends with the process, whose pipe it reads.
final class NATSServer: Sendable {
    static let shared = NATSServer()

    private struct Running {
        let port: Int
        let pipe: Pipe
        var accounts = 0
    }

    private struct DoesNotStart: Error {}

    private let state = Mutex<Running?>(nil)

    /// A connection to an account without streams, when it is up.
    func connection() async throws -> NATSConnection {
        let (port, account) = try state.withLock { state in
            var running = try state ?? NATSServer.start()
            defer {
                running.accounts += 1
                state = running
            }
            return (running.port, "a\(running.accounts)")
        }
        let configuration = NATSConfiguration(
            servers: [NATSServerAddress(host: "127.0.0.1", port: port)],
            name: account,
            credential: .password(user: account, password: account)
        )
        let (connected, isConnected) = AsyncStream.makeStream(of: Void.self)
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let connection = try NATSConnection(configuration, on: loop, logger: .silent) { event in
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

extension Logger {
    static let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
}

extension ReplicatedLog {
    /// ``append(_:to:_:)`` as an async call.
    func append(_ message: LogMessage, to stream: LogStream) async -> AppendOutcome {
        await withCheckedContinuation { continuation in
            append(message, to: stream) { continuation.resume(returning: $0) }
        }
    }

    /// ``read(_:in:atLeast:_:)`` as an async call.
    func read(_ subjects: [LogSubject], in stream: LogStream, atLeast bound: UInt64) async throws -> [LogEntry] {
        try await withCheckedThrowingContinuation { continuation in
            read(subjects, in: stream, atLeast: bound) { continuation.resume(with: $0) }
        }
    }
}
