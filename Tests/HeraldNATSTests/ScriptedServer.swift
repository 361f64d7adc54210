import NIOCore
import NIOPosix

/// NATS server of which a test writes every byte.
struct ScriptedServer {
    static let info =
        #"INFO {"server_id":"A","server_name":"scripted","version":"2.15.1","max_payload":1048576,"headers":true}"#
        + "\r\n"

    let port: Int

    /// Runs a script for each client, one after the other, until the body returns.
    static func with(
        _ script: @escaping @Sendable (inout Peer) async throws -> Void,
        body: (ScriptedServer) async throws -> Void
    ) async throws {
        let (clients, arrived) = AsyncStream.makeStream(of: Client.self)
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { child in
                child.eventLoop.makeCompletedFuture {
                    let (input, bytes) = AsyncStream.makeStream(of: ByteBuffer.self)
                    try child.pipeline.syncOperations.addHandler(Reader(bytes: bytes))
                    arrived.yield(Client(channel: child, input: input))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = channel.localAddress?.port ?? 0
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for await client in clients {
                    var peer = Peer(channel: client.channel, input: client.input.makeAsyncIterator())
                    // A client that goes away ends its script.
                    try? await script(&peer)
                    try? await client.channel.close()
                }
            }
            try await body(ScriptedServer(port: port))
            group.cancelAll()
        }
        try await channel.close()
    }

    private struct Client: Sendable {
        let channel: any Channel
        let input: AsyncStream<ByteBuffer>
    }

    private final class Reader: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        let bytes: AsyncStream<ByteBuffer>.Continuation

        init(bytes: AsyncStream<ByteBuffer>.Continuation) {
            self.bytes = bytes
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            bytes.yield(unwrapInboundIn(data))
        }

        func channelInactive(context: ChannelHandlerContext) {
            bytes.finish()
        }
    }

    /// One client, as the server sees it.
    struct Peer {
        struct Ended: Error {}

        let channel: any Channel
        var input: AsyncStream<ByteBuffer>.Iterator
        var pending = ""

        func send(_ text: String) async throws {
            try await channel.writeAndFlush(ByteBuffer(string: text))
        }

        /// The client's next line.
        mutating func line() async throws -> String {
            while true {
                if let end = pending.range(of: "\r\n") {
                    let line = String(pending[..<end.lowerBound])
                    pending = String(pending[end.upperBound...])
                    return line
                }
                guard let more = await input.next() else { throw Ended() }
                pending += String(buffer: more)
            }
        }

        /// The next line that begins so; others are skipped.
        mutating func line(_ beginning: String) async throws -> String {
            while true {
                let line = try await line()
                if line.hasPrefix(beginning) { return line }
            }
        }

        /// Accepts the client as a server does.
        mutating func accept() async throws {
            try await send(ScriptedServer.info)
            _ = try await line("CONNECT ")
            _ = try await line("PING")
            try await send("PONG\r\n")
        }

        /// The next publish: its subjects, and the payload if that is one line.
        mutating func publish() async throws -> (subject: String, replyTo: String, payload: String) {
            while true {
                let fields = try await line().split(separator: " ").map(String.init)
                guard let name = fields.first, name == "PUB" || name == "HPUB" else { continue }
                if name == "HPUB" { while try await !line().isEmpty {} }
                let hasReply = fields.count == (name == "PUB" ? 4 : 5)
                return (fields[1], hasReply ? fields[2] : "", try await line())
            }
        }

        /// Sends a message to a subscription.
        func message(_ subject: String, _ payload: String, number: Int = 1, replyTo: String = "") async throws {
            try await send("MSG \(subject) \(number) \(replyTo) \(payload.utf8.count)\r\n\(payload)\r\n")
        }
    }
}

extension String {
    /// The first place of a text.
    fileprivate func range(of text: String) -> Range<Index>? {
        guard let first = text.utf8.first else { return nil }
        var start = utf8.startIndex
        while let place = utf8[start...].firstIndex(of: first) {
            if utf8[place...].starts(with: text.utf8) {
                return place..<utf8.index(place, offsetBy: text.utf8.count)
            }
            start = utf8.index(after: place)
        }
        return nil
    }
}
