package import NIOCore

/// Reads the PROXY protocol header of a connection from a trusted load balancer, in front of TLS.
///
/// It stays in the pipeline, because it knows the client's address.
final class ProxyHeaderReader: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// The client's address; nil before the header, and for connections of the load balancer itself.
    private(set) var client: ClientAddress?
    private let timeout: TimeAmount
    private let refusals: RefusalLog
    /// Called with the client's address, or nil for a connection of the load balancer itself.
    private let identify: (ClientAddress?) -> Void
    /// The bytes so far; nil once the header is read or refused.
    private var pending: ByteBuffer? = ByteBuffer()
    private var isRefused = false
    private var timer: Scheduled<Void>?

    init(timeout: TimeAmount, refusals: RefusalLog, identify: @escaping (ClientAddress?) -> Void) {
        self.timeout = timeout
        self.refusals = refusals
        self.identify = identify
    }

    func handlerAdded(context: ChannelHandlerContext) {
        timer = context.eventLoop.assumeIsolated().scheduleTask(in: timeout) {
            self.refuse("the load balancer did not send the PROXY protocol header in time", context)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard var bytes = pending else {
            if !isRefused { context.fireChannelRead(data) }
            return
        }
        var more = unwrapInboundIn(data)
        bytes.writeBuffer(&more)
        switch ProxyHeader(bytes.readableBytesView) {
        case .incomplete:
            pending = bytes
        case .malformed(let fault):
            refuse(fault.rawValue, context)
        case .local(let length):
            bytes.moveReaderIndex(forwardBy: length)
            proceed(nil, bytes, context)
        case .client(let address, let length):
            client = address
            bytes.moveReaderIndex(forwardBy: length)
            proceed(address, bytes, context)
        }
    }

    /// Passes on the bytes after the header.
    private func proceed(_ address: ClientAddress?, _ bytes: ByteBuffer, _ context: ChannelHandlerContext) {
        pending = nil
        timer?.cancel()
        identify(address)
        if bytes.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(bytes)) }
    }

    private func refuse(_ words: String, _ context: ChannelHandlerContext) {
        pending = nil
        isRefused = true
        timer?.cancel()
        refusals.note(.proxyHeader, words, context.channel)
        context.close(promise: nil)
    }
}

extension Channel {
    /// The client's address: behind a trusted load balancer the one that it reports.
    ///
    /// Only for the channel's event loop.
    package var clientAddress: ClientAddress? {
        let reader = try? pipeline.syncOperations.handler(type: ProxyHeaderReader.self)
        return reader?.client ?? remoteAddress.flatMap(ClientAddress.init)
    }
}
