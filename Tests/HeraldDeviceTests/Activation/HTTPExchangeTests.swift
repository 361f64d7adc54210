import Foundation
import HeraldModel
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Testing

@testable import HeraldDevice

/// Exchanges with a server that has prepared its answer, whatever it is asked.
struct HTTPExchangeTests {
    /// Answers the first bytes of each connection.
    private final class Answering: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        let answer: String
        let closes: Bool
        let heard: EventLoopPromise<String>

        init(_ answer: String, closes: Bool, heard: EventLoopPromise<String>) {
            (self.answer, self.closes, self.heard) = (answer, closes, heard)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            heard.succeed(String(buffer: unwrapInboundIn(data)))
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: answer)), promise: nil)
            if closes { context.close(promise: nil) }
        }
    }

    /// Runs `body` with an exchange and the bytes that the server gets first.
    private func exchange<Value: Sendable>(
        with answer: String,
        closes: Bool = false,
        tls: NIOSSLContext? = nil,
        timeout: Duration = .seconds(60),
        _ body: (HTTPExchange, EventLoopFuture<String>) async throws -> Value
    ) async throws -> Value {
        let heard = MultiThreadedEventLoopGroup.singleton.next().makePromise(of: String.self)
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Answering(answer, closes: closes, heard: heard))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(server.localAddress?.port)
        let exchange = HTTPExchange(
            HostPort(host: "127.0.0.1", port: port),
            tls: tls,
            timeout: timeout,
            maximumBytes: 8
        )
        let outcome: Result<Value, any Error>
        do {
            outcome = .success(try await body(exchange, heard.futureResult))
        } catch {
            outcome = .failure(error)
        }
        heard.succeed("")
        try await server.close()
        return try outcome.get()
    }

    private func answer(_ text: String, closes: Bool = false, tls: NIOSSLContext? = nil) async throws -> String {
        try await exchange(with: text, closes: closes, tls: tls) { exchange, _ in
            let answer = try await exchange.send(.GET, "/")
            return "\(answer.head.status.code) \(String(buffer: answer.body))"
        }
    }

    @Test func `a request is whole, and says that it is the connection's only one`() async throws {
        let (port, text) = try await exchange(with: "HTTP/1.1 204 No Content\r\n\r\n") { exchange, heard in
            _ = try await exchange.send(.POST, "/a?b=c", headers: ["x": "y"], body: ByteBuffer(string: "12345"))
            return (exchange.server.port, try await heard.get())
        }
        let lines = text.components(separatedBy: "\r\n")
        #expect(lines.first == "POST /a?b=c HTTP/1.1" && lines.last == "12345")
        #expect(
            Set(lines.dropFirst().dropLast(2)) == [
                "x: y", "host: 127.0.0.1:\(port)", "connection: close", "content-length: 5",
            ]
        )
    }

    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n12345678", "200 12345678"),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "404 "),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "200 abcde"),
        // A redirect is an answer like others.
        ("HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n", "302 "),
    ])
    func `an answer is read to its end, and no further`(text: String, answer: String) async throws {
        #expect(try await self.answer(text) == answer)
        #expect(try await self.answer(text, closes: true) == answer)
    }

    @Test func `an answer without a length ends with the connection`() async throws {
        #expect(try await answer("HTTP/1.0 200 OK\r\n\r\nabc", closes: true) == "200 abc")
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n123456789",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabcde\r\n4\r\nabcd\r\n0\r\n\r\n",
    ])
    func `a body above the limit is an error`(text: String) async throws {
        await #expect(throws: HTTPExchange.TooLong.self) { try await answer(text) }
    }

    @Test(arguments: [
        "", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
        "SSH-2.0-OpenSSH_9.2\r\n",
    ])
    func `an answer that is cut off, or not HTTP, is an error`(text: String) async throws {
        await #expect(throws: (any Error).self) { try await answer(text, closes: true) }
    }

    @Test func `a server that does not speak TLS is an error of TLS`() async throws {
        let tls = try NIOSSLContext(configuration: .makeClientConfiguration())
        await #expect(throws: NIOSSLError.self) { try await answer("HTTP/1.1 400 Bad Request\r\n\r\n", tls: tls) }
    }

    @Test(arguments: ["a\nb", "a\r\nhost: other", "a\0"])
    func `a header that HTTP does not allow is an error at once`(value: String) async throws {
        await #expect(throws: HTTPParserError.self) {
            try await exchange(with: "") { exchange, _ in try await exchange.send(.GET, "/", headers: ["x": value]) }
        }
    }

    @Test func `silence ends after the timeout`() async throws {
        await #expect(throws: ChannelError.self) {
            try await exchange(with: "", timeout: .milliseconds(50)) { exchange, _ in try await exchange.send(.GET, "/")
            }
        }
    }

    @Test func `a cancelled exchange ends at once`() async throws {
        try await exchange(with: "") { exchange, heard in
            let task = Task { try await exchange.send(.GET, "/") }
            _ = try await heard.get()
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }
}
