import NIOCore
import NIOPosix
import Synchronization

/// A way to a service that can die without a word: what comes on connections that were open then is dropped, in both
/// directions, and nothing is closed.
final class FreezingProxy: Sendable {
    let port: Int
    private let channel: any Channel
    private let generation: Generation

    private final class Generation: Sendable {
        let current = Atomic<Int>(0)
        let connections = Atomic<Int>(0)
    }

    init(to port: Int) async throws {
        let generation = Generation()
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { client in
                client.eventLoop.makeCompletedFuture {
                    let born = generation.current.load(ordering: .relaxed)
                    generation.connections.add(1, ordering: .relaxed)
                    try client.pipeline.syncOperations.addHandler(
                        Relay(isFrozen: { generation.current.load(ordering: .relaxed) != born }, to: port)
                    )
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        self.port = channel.localAddress?.port ?? 0
        self.generation = generation
    }

    /// How many connections were made.
    var connections: Int { generation.connections.load(ordering: .relaxed) }

    /// Lets the connections of this moment die.
    func freeze() {
        generation.current.add(1, ordering: .relaxed)
    }

    func close() async throws {
        try await channel.close()
    }

    /// Passes bytes to the other side; the one that a client opened makes the other.
    private final class Relay: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let isFrozen: @Sendable () -> Bool
        private let port: Int?
        private var other: (any Channel)?
        private var early: [ByteBuffer] = []

        init(isFrozen: @escaping @Sendable () -> Bool, to port: Int?, other: (any Channel)? = nil) {
            self.isFrozen = isFrozen
            self.port = port
            self.other = other
        }

        func channelActive(context: ChannelHandlerContext) {
            guard let port else { return }
            let (client, isFrozen) = (context.channel, isFrozen)
            let relay = NIOLoopBound(self, eventLoop: context.eventLoop)
            ClientBootstrap(group: context.eventLoop)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let back = Relay(isFrozen: isFrozen, to: nil, other: client)
                        try channel.pipeline.syncOperations.addHandler(back)
                    }
                }
                .connect(host: "127.0.0.1", port: port)
                .whenComplete { result in
                    guard case .success(let channel) = result else { return client.close(promise: nil) }
                    relay.value.other = channel
                    for bytes in relay.value.early { channel.write(bytes, promise: nil) }
                    channel.flush()
                }
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard !isFrozen() else { return }
            let bytes = unwrapInboundIn(data)
            if let other { other.writeAndFlush(bytes, promise: nil) } else { early.append(bytes) }
        }

        func channelInactive(context: ChannelHandlerContext) {
            if !isFrozen() { other?.close(promise: nil) }
        }
    }
}
