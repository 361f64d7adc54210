import HeraldIdentity
package import HeraldModel
package import NIOCore
package import NIOHTTP1
import NIOPosix
package import NIOSSL

/// A client of HTTP/1.1 with one connection for each request, which is enough for activation.
package struct HTTPExchange: Sendable {
    package struct Answer: Sendable {
        package let head: HTTPResponseHead
        package let body: ByteBuffer
    }

    /// The body of the answer is longer than the limit.
    struct TooLong: Error {}

    let server: HostPort
    private let tls: NIOSSLContext?
    private let timeout: Duration
    private let maximumBytes: Int

    /// - Parameters:
    ///   - server: A host name or an IP address without brackets, and a port.
    ///   - tls: The TLS context; nil for plain HTTP.
    ///   - timeout: Limits the whole exchange.
    ///   - maximumBytes: The longest body of an answer.
    package init(_ server: HostPort, tls: NIOSSLContext?, timeout: Duration, maximumBytes: Int) {
        self.server = server
        self.tls = tls
        self.timeout = timeout
        self.maximumBytes = maximumBytes
    }

    /// Sends a request.
    /// - Throws: An error of NIO or NIOSSL, ``TooLong``, or `CancellationError`.
    package func send(
        _ method: HTTPMethod,
        _ uri: String,
        headers: HTTPHeaders = [:],
        body: ByteBuffer = ByteBuffer()
    ) async throws -> Answer {
        var head = HTTPRequestHead(version: .http1_1, method: method, uri: uri, headers: headers)
        head.headers.add(name: "host", value: "\(server)")
        head.headers.add(name: "connection", value: "close")
        if method != .GET { head.headers.add(name: "content-length", value: "\(body.readableBytes)") }
        let parts: [HTTPClientRequestPart] = [.head(head), .body(.byteBuffer(body)), .end(nil)]
        let answer = MultiThreadedEventLoopGroup.singleton.next().makePromise(of: Answer.self)
        let loop = answer.futureResult.eventLoop
        let timer = loop.scheduleTask(in: TimeAmount(timeout)) {
            answer.fail(ChannelError.connectTimeout(TimeAmount(timeout)))
        }
        defer { timer.cancel() }
        return try await withTaskCancellationHandler {
            ClientBootstrap(group: loop)
                .connectTimeout(TimeAmount(timeout))
                .connect(host: LocalName.resolvable(server.host), port: server.port)
                .flatMapThrowing { channel in
                    answer.futureResult.whenComplete { _ in channel.close(promise: nil) }
                    guard channel.isActive else { throw ChannelError.eof }
                    let pipeline = channel.pipeline.syncOperations
                    if let tls {
                        // Server name indication is for names. An address is verified as the peer's address.
                        let name = NumericAddress(server.host) == nil ? server.host : nil
                        try pipeline.addHandler(NIOSSLClientHandler(context: tls, serverHostname: name))
                    }
                    try pipeline.addHTTPClientHandlers()
                    try pipeline.addHandler(AnswerHandler(answer, maximumBytes: maximumBytes))
                    for part in parts {
                        // Of a head that is not HTTP no byte is sent. Other failures end the connection, which says why.
                        channel.write(part).whenFailure { error in
                            if error is HTTPParserError { answer.fail(error) }
                        }
                    }
                    channel.flush()
                }
                .whenFailure { answer.fail($0) }
            return try await answer.futureResult.get()
        } onCancel: {
            answer.fail(CancellationError())
        }
    }
}

/// Collects an answer; the first result of the promise counts.
private final class AnswerHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart

    private let answer: EventLoopPromise<HTTPExchange.Answer>
    private let maximumBytes: Int
    private var head: HTTPResponseHead?
    private var body = ByteBuffer()

    init(_ answer: EventLoopPromise<HTTPExchange.Answer>, maximumBytes: Int) {
        self.answer = answer
        self.maximumBytes = maximumBytes
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): self.head = head
        case .body(var part):
            guard part.readableBytes <= maximumBytes - body.readableBytes else {
                return answer.fail(HTTPExchange.TooLong())
            }
            body.writeBuffer(&part)
        case .end:
            guard let head else { return }
            answer.succeed(HTTPExchange.Answer(head: head, body: body))
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        answer.fail(error)
    }

    func channelInactive(context: ChannelHandlerContext) {
        answer.fail(ChannelError.eof)
    }
}
