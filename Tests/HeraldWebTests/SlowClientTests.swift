import Hummingbird
import Logging
import NIOCore
import NIOEmbedded
import NIOPosix
import Testing

@testable import HeraldWeb

/// Clients of a listener that send a byte at a time, on a socket.
///
/// The tests move the clock of their requests.
@Suite(.timeLimit(.minutes(10))) struct SlowClientTests {
    /// A client's connection.
    private struct Client {
        var inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
        let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
        let clock: NIOAsyncTestingEventLoop

        func send(_ text: String) async throws {
            try await outbound.write(ByteBuffer(string: text))
        }

        /// Sends a byte a minute.
        func drip(minutes: Int) async throws {
            for _ in 0..<minutes {
                try await send("x")
                await clock.advanceTime(by: .minutes(1))
            }
        }

        /// Sends a byte a minute until the end.
        mutating func dripToEnd() async throws {
            while (try? await send("x")) != nil { await clock.advanceTime(by: .minutes(1)) }
            try await expectEnd()
        }

        /// Waits for an answer.
        mutating func expectAnswer() async throws {
            var text = ""
            while !text.contains("answered") {
                let bytes = try await inbound.next()
                text += String(buffer: try #require(bytes, "the connection ended"))
            }
        }

        /// Waits for the end, which is a reset if bytes came that nobody read.
        mutating func expectEnd() async throws {
            do {
                while try await inbound.next() != nil {}
            } catch is IOError {}
        }
    }

    /// Connects to a listener with an hour for a header and an hour for a body.
    ///
    /// Its idle timeout is as long, by the machine's clock, and plays no part.
    private func withClient(
        _ body: @Sendable (_ client: inout Client, _ begun: AsyncStream<Void>) async throws -> Void
    ) async throws {
        let clock = NIOAsyncTestingEventLoop()
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let (opened, open) = AsyncStream.makeStream(of: Int.self)
        let router = Router()
        router.get("/") { _, _ in "answered" }
        router.post("/") { request, _ -> String in
            begin.yield()
            _ = try await request.body.collect(upTo: 1000)
            return "answered"
        }
        let listener = WebListener(
            ListenAddress(listener: "test", .port(host: "127.0.0.1", port: 0), portOption: "", hostOption: ""),
            router: router,
            server: .http1(timeout: .seconds(3600), descriptors: 16, clock: clock),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            isOpen: { open.yield($0) }
        )
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await listener.run() }
            var ports = opened.makeAsyncIterator()
            let first = await ports.next()
            let port = try #require(first)
            let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connect(host: "127.0.0.1", port: port) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                    }
                }
            try await channel.executeThenClose { inbound, outbound in
                var client = Client(inbound: inbound.makeAsyncIterator(), outbound: outbound, clock: clock)
                try await body(&client, begun)
            }
            group.cancelAll()
            while await group.nextResult() != nil {}
        }
        await clock.shutdownGracefully()
    }

    @Test func `a header that comes a byte at a time ends at its deadline`() async throws {
        try await withClient { client, _ in
            // The time of the next header begins with an answer.
            try await client.send("GET / HTTP/1.1\r\nhost: test\r\n\r\n")
            try await client.expectAnswer()
            try await client.send("GET / HTTP/1.1\r\nhost: test\r\nslow: ")
            try await client.drip(minutes: 59)
            try await client.send("\r\n\r\n")
            try await client.expectAnswer()
            try await client.send("GET / HTTP/1.1\r\nhost: test\r\nslow: ")
            try await client.drip(minutes: 60)
            // On a busy machine the listener knows the end of its answer after its client, and of the time, too.
            try await client.dripToEnd()
        }
    }

    @Test func `a body that comes a byte at a time ends at its deadline`() async throws {
        try await withClient { client, begun in
            var requests = begun.makeAsyncIterator()
            try await client.send("POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 60\r\n\r\n")
            _ = await requests.next()
            try await client.drip(minutes: 59)
            try await client.send("x")
            try await client.expectAnswer()
            try await client.send("POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 100\r\n\r\n")
            _ = await requests.next()
            try await client.drip(minutes: 60)
            try await client.expectEnd()
        }
    }
}
