import HeraldModel
import NIOCore

/// Asks a proxy for a tunnel, and leaves the pipeline once the proxy has made it.
///
/// Own code: NIOExtras has such a handler, whose error does not tell the status, and which traps on some answers.
final class TunnelHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Longest header of the proxy's answer, in bytes.
    private static let maximumHeader = 16 << 10

    private let tunnel: ProviderProxy.Tunnel
    private let target: HostPort
    private let timeout: TimeAmount
    private let opened: EventLoopPromise<Void>
    private var answer = ByteBuffer()
    private var timer: Scheduled<Void>?

    /// The proxy resolves the name of `target`, and answers within `timeout`.
    ///
    /// `opened` is always told: that there is a tunnel, or a ``ProviderError``.
    init(_ tunnel: ProviderProxy.Tunnel, to target: HostPort, timeout: TimeAmount, opened: EventLoopPromise<Void>) {
        self.tunnel = tunnel
        self.target = target
        self.timeout = timeout
        self.opened = opened
    }

    func handlerAdded(context: ChannelHandlerContext) {
        // The name comes from a configuration, and must not become a field of its own.
        guard target.host.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            return end(
                context,
                .failure(ProviderError(.badRequest, "the service's host has characters that no host has"))
            )
        }
        let place = target.authority(schemePort: 0)
        let credential = tunnel.authorization.map { "proxy-authorization: \($0)\r\n" } ?? ""
        let request = "CONNECT \(place) HTTP/1.1\r\nhost: \(place)\r\nuser-agent: herald\r\n\(credential)\r\n"
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: request)), promise: nil)
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        timer = context.eventLoop.scheduleTask(in: timeout) {
            let (handler, context) = bound.value
            handler.end(context, .failure(handler.error(.timedOut, "does not answer in time")))
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
        // Without effect if it was told.
        opened.fail(ChannelError.eof)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        answer.writeBuffer(&bytes)
        while let end = endOfHeader {
            guard let header = answer.readString(length: end), let status = Self.status(header) else {
                return self.end(context, .failure(notProxy))
            }
            // 1xx announces the answer (RFC 9110 §15.2).
            if (100..<200).contains(status) { continue }
            return self.end(context, (200..<300).contains(status) ? .success(()) : .failure(refusal(status, header)))
        }
        // Bytes that do not begin like an answer need not be awaited.
        let begin = answer.readableBytesView.prefix(5)
        if answer.readableBytes > Self.maximumHeader || !"HTTP/".utf8.starts(with: begin) {
            end(context, .failure(notProxy))
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        end(context, .failure(error(.unreachable, "closed the connection without an answer")))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        end(context, .failure(error))
    }

    private func end(_ context: ChannelHandlerContext, _ result: Result<Void, any Error>) {
        timer?.cancel()
        opened.completeWith(result)
        guard case .success = result else { return context.close(promise: nil) }
        // The next handlers are there now. The service speaks second, so nothing follows the header in fact.
        if answer.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(answer)) }
        context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    }

    // MARK: - The answer

    /// Length of the header with its empty line, if it is complete.
    private var endOfHeader: Int? {
        let view = answer.readableBytesView
        var lineIsEmpty = false
        for (offset, byte) in view.enumerated() {
            if byte == UInt8(ascii: "\n") {
                if lineIsEmpty { return offset + 1 }
                lineIsEmpty = true
            } else if byte != UInt8(ascii: "\r") {
                lineIsEmpty = false
            }
        }
        return nil
    }

    /// The status in `HTTP/1.1 200 Connection established`.
    private static func status(_ header: String) -> Int? {
        let words = header.prefix { !$0.isNewline }.split(separator: " ", maxSplits: 2)
        guard words.count >= 2, words[0].hasPrefix("HTTP/1."), let status = Int(words[1]), (100...599).contains(status)
        else { return nil }
        return status
    }

    private func refusal(_ status: Int, _ header: String) -> ProviderError {
        switch status {
        case 407 where !header.lowercased().contains("basic"):
            error(.badProxy, "wants another kind of credentials than a user and a password (407)")
        case 407 where tunnel.authorization == nil:
            error(.badProxy, "wants a user and a password (407): write http://user:password@\(tunnel.proxy)")
        // tinyproxy answers 401 to a wrong password.
        case 401, 407: error(.badProxy, "refuses the user and password of its address (\(status))")
        case 403: error(.badProxy, "refuses a tunnel to \(target) (403): its rules must allow it")
        default: error(.unreachable, "makes no tunnel to \(target): it answers \(status)")
        }
    }

    private var notProxy: ProviderError { error(.badProxy, "does not answer as an HTTP proxy does: check its address") }

    private func error(_ code: ProviderError.Code, _ words: String) -> ProviderError {
        ProviderError(code, "the proxy \(tunnel.proxy) \(words)")
    }
}
