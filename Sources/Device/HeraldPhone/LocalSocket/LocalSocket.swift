import Foundation
import HeraldDevice
import NIOCore
import NIOPosix

/// The agent's local socket, for apps and tools of this machine: one JSON object per line, both ways.
struct LocalSocket: Sendable {
    /// The longest line of a request, in bytes.
    static let maximumLineBytes = 64 << 10
    static let maximumConnections = 64
    /// The time for the last answers after the peer has closed its side.
    static let closeTimeout = Duration.seconds(10)

    private let channel: NIOAsyncChannel<NIOAsyncChannel<ByteBuffer, ByteBuffer>, Never>

    /// Listens at the folder's socket; throws ``DeviceError/Code/badFolder``.
    static func open(_ folder: AgentFolder) async throws -> LocalSocket {
        try await SocketPath.shortened(folder.socketPath) { path in
            unlink(path)
            do {
                let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                    // A shell pipeline closes its side and waits for the answer.
                    .childChannelOption(.allowRemoteHalfClosure, value: true)
                    .bind(unixDomainSocketPath: path) { channel in
                        channel.eventLoop.makeCompletedFuture {
                            try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                        }
                    }
                chmod(path, 0o600)
                return LocalSocket(channel: channel)
            } catch {
                throw DeviceError(.badFolder, "cannot listen at \(folder.socketPath): \(error)")
            }
        }
    }

    func serve(_ agent: DeviceAgent) async throws {
        try await channel.executeThenClose { connections in
            try await withThrowingDiscardingTaskGroup { group in
                for try await connection in connections {
                    group.addTask { await LocalConnection.serve(connection, agent) }
                }
            }
        }
    }
}

/// The path of a socket, which the system limits to 107 bytes and swift-nio to 103.
enum SocketPath {
    /// Replaces a longer path by a short one through `/proc`, which is valid until `body` returns.
    static func shortened<Result: Sendable>(
        _ path: String,
        _ body: (String) async throws -> Result
    ) async throws -> Result {
        guard path.utf8.count > 103 else { return try await body(path) }
        let parent = (path as NSString).deletingLastPathComponent
        let folder = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw AgentFile.failure("cannot open", parent) }
        defer { close(folder) }
        return try await body("/proc/self/fd/\(folder)/\((path as NSString).lastPathComponent)")
    }
}

/// One connection of the local socket, to which the agent sends messages.
final class LocalPeer: Sendable {
    /// The most unsent lines; a peer that reads too slowly is disconnected.
    static let maximumWaiting = 256

    let id: Int
    private let channel: any Channel
    private let lines: AsyncStream<[UInt8]>.Continuation

    init(id: Int, channel: any Channel, lines: AsyncStream<[UInt8]>.Continuation) {
        self.id = id
        self.channel = channel
        self.lines = lines
    }

    func send(_ line: [UInt8]) {
        if case .dropped = lines.yield(line) { channel.close(promise: nil) }
    }
}
