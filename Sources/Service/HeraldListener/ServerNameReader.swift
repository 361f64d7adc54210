package import HeraldIdentity
package import NIOCore

/// Reads the server name in the client's first TLS message, and the unencrypted alert of a client that gives up.
///
/// It passes the message on in one piece once it is complete and the handshake's turn has come, so the handshake begins
/// once. The TLS handler judges everything that is not a ClientHello with a name. A client that is asked for another
/// ClientHello (HelloRetryRequest) waits for another turn: only then the expensive part begins. A client without TLS gets
/// a plain answer, and then its connection ends.
package final class ServerNameReader: ChannelDuplexHandler, RemovableChannelHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer
    package typealias OutboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    /// The server name of the ClientHello; nil until it is read, and if there is none.
    private(set) var name: String?
    /// The alert that the client sent without encryption after its ClientHello.
    ///
    /// OpenSSL does so under TLS 1.3 when it refuses the server's certificate. BoringSSL expects an encrypted record
    /// there and only reports its length.
    package private(set) var alert: TLSAlert?
    /// The awaited ClientHello so far; nil once it is passed on.
    private var hello: ClientHelloBuffer? = ClientHelloBuffer()
    private var isWaiting = false
    /// Whether the next bytes for the client are the answer to its first ClientHello.
    private var isAnswerAwaited = true
    /// The answer to a client without TLS; nil leaves it to TLS.
    private let words: String?
    private var isRefused = false
    private let turns: HandshakeQueue?
    private let hasBegun: () -> Void

    /// Without `turns`, a handshake may begin at once.
    ///
    /// `words` go to a client without TLS. `hasBegun` is called when the handshake begins.
    init(words: String? = nil, turns: HandshakeQueue? = nil, hasBegun: @escaping () -> Void = {}) {
        self.words = words
        self.turns = turns
        self.hasBegun = hasBegun
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isRefused else { return }
        guard hello != nil else {
            noteAlert(unwrapInboundIn(data))
            return context.fireChannelRead(data)
        }
        let bytes = unwrapInboundIn(data)
        if !isAnswerAwaited { noteAlert(bytes) }
        let isComplete = hello?.append(bytes) == true
        if let words, isAnswerAwaited, let all = hello?.bytes.readableBytesView, !OtherProtocol.isTLS(all) {
            return refuse(OtherProtocol(all), words, context)
        }
        guard isComplete, !isWaiting else { return }
        if isAnswerAwaited { name = hello?.serverName }
        if let turns, !turns.begins(of: Self.network(context.channel), later: { self.begin(context) }) {
            isWaiting = true
            // Its bytes stay in the socket meanwhile.
            return setReading(false, context)
        }
        hasBegun()
        passOn(context)
    }

    package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if isAnswerAwaited {
            isAnswerAwaited = false
            if ClientHello.isAskedForAgain(by: unwrapOutboundIn(data)) { hello = ClientHelloBuffer(isSecond: true) }
        }
        context.write(data, promise: promise)
    }

    package func channelInactive(context: ChannelHandlerContext) {
        // A handshake that never had its turn costs nothing.
        if !isWaiting { passOn(context) }
        context.fireChannelInactive()
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        hello = nil
    }

    /// The handshake's turn has come.
    private func begin(_ context: ChannelHandlerContext) -> Bool {
        isWaiting = false
        guard hello != nil, context.channel.isActive else { return false }
        hasBegun()
        passOn(context)
        setReading(true, context)
        context.fireChannelReadComplete()
        return true
    }

    /// Answers a client without TLS; nil waits for more of its bytes.
    private func refuse(_ other: OtherProtocol?, _ words: String, _ context: ChannelHandlerContext) {
        guard let other else { return }
        isRefused = true
        hello = nil
        let channel = context.channel
        context.fireUserInboundEventTriggered(PlainConnection())
        context.writeAndFlush(wrapOutboundOut(other.answer(words)), promise: nil)
        // Closed at once, the socket would be reset by bytes that still come, and the answer lost.
        context.close(mode: .output, promise: nil)
        context.eventLoop.assumeIsolated().scheduleTask(in: TLSShutdown.longestWait) { channel.close(promise: nil) }
    }

    private static func network(_ channel: any Channel) -> ClientNetwork {
        channel.clientAddress?.network ?? ClientNetwork(nil)
    }

    private func setReading(_ reads: Bool, _ context: ChannelHandlerContext) {
        // Fails only on a channel that is closed.
        try? context.channel.syncOptions?.setOption(.autoRead, value: reads)
    }

    private func noteAlert(_ bytes: ByteBuffer) {
        alert = TLSAlert(record: bytes.readableBytesView) ?? alert
    }

    private func passOn(_ context: ChannelHandlerContext) {
        guard let bytes = hello?.bytes, bytes.readableBytes > 0 else { return }
        hello = nil
        context.fireChannelRead(wrapInboundOut(bytes))
    }
}
