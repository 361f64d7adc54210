import NIOCore
import NIOPosix

/// NATS server of which a test writes every byte.
struct ScriptedServer {
    typealias Connection = NIOAsyncChannel<ByteBuffer, ByteBuffer>

    static let info =
        #"INFO {"server_id":"A","server_name":"scripted","version":"2.15.1","max_payload":1048576,"headers":true}"#
        + "\r\n"

    let port: Int

    /// Runs a script for each client, one after the other, until the body returns.
    static func with(
        _ script: @escaping @Sendable (inout Peer) async throws -> Void,
        body: (ScriptedServer) async throws -> Void
    ) async throws {
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .bind(host: "127.0.0.1", port: 0) { child in
                child.eventLoop.makeCompletedFuture { try Connection(wrappingChannelSynchronously: child) }
            }
        let port = channel.channel.localAddress?.port ?? 0
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                try await channel.executeThenClose { clients in
                    for try await client in clients {
                        try? await client.executeThenClose { input, output in
                            var peer = Peer(input: input.makeAsyncIterator(), output: output)
                            try await script(&peer)
                        }
                    }
                }
            }
            try await body(ScriptedServer(port: port))
            group.cancelAll()
        }
    }

    /// One client, as the server sees it.
    struct Peer {
        struct Ended: Error {}

        var input: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
        let output: NIOAsyncChannelOutboundWriter<ByteBuffer>
        var pending = ""

        func send(_ text: String) async throws {
            try await output.write(ByteBuffer(string: text))
        }

        /// The client's next line.
        mutating func line() async throws -> String {
            while true {
                if let end = pending.range(of: "\r\n") {
                    let line = String(pending[..<end.lowerBound])
                    pending = String(pending[end.upperBound...])
                    return line
                }
                guard let more = try await input.next() else { throw Ended() }
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
