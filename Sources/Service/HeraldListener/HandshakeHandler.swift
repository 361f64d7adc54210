import HeraldTrust
import NIOCore
import NIOSSL
import NIOTLS

/// Waits for the end of the TLS handshake, then makes way for the protocol's handler.
///
/// It is the last handler of the pipeline until then, so it closes the connection on every error that reaches it.
final class HandshakeHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private let connection: AdmittedConnection?
    private let tls: NIOSSLServerHandler
    private let nameReader: ServerNameReader
    private let timeout: TimeAmount
    /// The answer to a client that speaks HTTP/1.1 over TLS; nil leaves it to the port's protocol.
    private let words: String?
    private let refusals: RefusalLog
    private let initializer: TLSListener.Initializer
    /// Errors may follow each other; one connection is one refusal.
    private var isOver = false
    private var timer: Scheduled<Void>?

    init(
        connection: AdmittedConnection?,
        tls: NIOSSLServerHandler,
        nameReader: ServerNameReader,
        timeout: TimeAmount,
        words: String? = nil,
        refusals: RefusalLog,
        initializer: @escaping TLSListener.Initializer
    ) {
        self.connection = connection
        self.tls = tls
        self.nameReader = nameReader
        self.timeout = timeout
        self.words = words
        self.refusals = refusals
        self.initializer = initializer
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        timer = context.eventLoop.assumeIsolated().scheduleTask(in: timeout) {
            self.isOver = true
            self.refusals.noteTimeout(channel)
            channel.close(promise: nil)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is PlainConnection {
            timer?.cancel()
            isOver = true
            return refusals.notePlain(context.channel)
        }
        guard case TLSUserEvent.handshakeCompleted(let negotiated) = event else {
            return context.fireUserInboundEventTriggered(event)
        }
        timer?.cancel()
        isOver = true
        do {
            let peer = HandshakePeer(
                certificate: try tls.peerCertificate?.toDERBytes(),
                serverName: nameReader.name,
                negotiatedProtocol: negotiated,
                connection: connection
            )
            if let words, negotiated == nil {
                try HTTP1Answer.add(words, behind: tls, of: context.channel, refusals)
            }
            try admit(peer, context)
            let pipeline = context.pipeline.syncOperations
            pipeline.removeHandler(nameReader, promise: nil)
            pipeline.removeHandler(self, promise: nil)
        } catch {
            if let refusal = error as? PeerRefusal {
                refusals.note(HandshakeRefusalReason(refusal), refusal.message, context.channel)
            } else {
                refusals.noteError(error)
            }
            context.close(promise: nil)
        }
    }

    private func admit(_ peer: HandshakePeer, _ context: ChannelHandlerContext) throws {
        do {
            try initializer(context.channel, peer)
        } catch let refusal as RefusedConnection {
            guard let reporter = refusal.reporter else { throw refusal.fault }
            refusals.note(HandshakeRefusalReason(refusal.fault), refusal.fault.message, context.channel)
            try reporter(context.channel)
        }
    }

    /// The handshake is over, or the connection is gone, perhaps before it became active.
    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // The handshake failed; BoringSSL has sent its alert.
        timer?.cancel()
        if !isOver {
            isOver = true
            refusals.noteFailure(error, of: tls, alert: nameReader.alert, context.channel)
        }
        context.close(promise: nil)
    }
}
