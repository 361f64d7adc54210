import Foundation
import HeraldModel
import NIOCore
import NIOPosix

/// The socket on which apps and tools of this machine talk to the agent: one object of JSON a line, both ways.
struct LocalSocket: Sendable {
    /// The longest line that is taken, in bytes.
    static let maximumLineBytes = 64 << 10
    /// The most connections at once.
    static let maximumConnections = 64
    /// How long one who says no more may take to read what was answered.
    static let farewell = Duration.seconds(10)

    private let channel: NIOAsyncChannel<NIOAsyncChannel<ByteBuffer, ByteBuffer>, Never>

    /// Listens at the folder's socket.
    ///
    /// Throws ``DeviceError/Code/badFolder``.
    static func open(_ folder: AgentFolder) async throws -> LocalSocket {
        let place = try LocalPlace(folder.socketPath)
        unlink(place.path)
        do {
            let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                // Who has said all and waits for the answer, as a pipeline of a shell does, gets it.
                .childChannelOption(.allowRemoteHalfClosure, value: true)
                .bind(unixDomainSocketPath: place.path) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                    }
                }
            chmod(place.path, 0o600)
            return LocalSocket(channel: channel)
        } catch {
            throw DeviceError(.badFolder, "cannot listen at \(folder.socketPath): \(error)")
        }
    }

    func serve(_ agent: DeviceAgent) async throws {
        try await channel.executeThenClose { connections in
            try await withThrowingDiscardingTaskGroup { group in
                for try await connection in connections {
                    group.addTask { await LocalConnection.hold(connection, agent) }
                }
            }
        }
    }
}

/// The path of a socket, by which it can be reached however long it is: the system takes 107 bytes.
final class LocalPlace: Sendable {
    let path: String
    private let folder: CInt

    init(_ path: String) throws {
        guard path.utf8.count > 100 else {
            self.path = path
            folder = -1
            return
        }
        let parent = (path as NSString).deletingLastPathComponent
        folder = Foundation.open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw AgentFile.failure("cannot open", parent) }
        self.path = "/proc/self/fd/\(folder)/\((path as NSString).lastPathComponent)"
    }

    deinit {
        if folder >= 0 { close(folder) }
    }
}

/// One connection of the local socket, as the agent tells it something.
final class LocalPeer: Sendable {
    /// The most lines that wait for a reader; one that lets more come together is let go.
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
