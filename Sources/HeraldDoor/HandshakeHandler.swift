import HeraldTrust
import Logging
import NIOCore
import NIOSSL
import NIOTLS

/// Waits for the end of the handshake, then makes way for the protocol's handler, which is the end of the pipeline: an
/// error that nobody handled must close the connection there.
final class HandshakeHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private let tls: NIOSSLServerHandler
    private let nameReader: ServerNameReader
    private let patience: TimeAmount
    private let refusals: RefusalDesk
    private let logger: Logger
    private let initializer: TLSDoor.Initializer
    /// Errors may come one after the other; one connection is one refusal.
    private var isOver = false
    private var timeout: Scheduled<Void>?

    init(
        tls: NIOSSLServerHandler,
        nameReader: ServerNameReader,
        patience: TimeAmount,
        refusals: RefusalDesk,
        logger: Logger,
        initializer: @escaping TLSDoor.Initializer
    ) {
        self.tls = tls
        self.nameReader = nameReader
        self.patience = patience
        self.refusals = refusals
        self.logger = logger
        self.initializer = initializer
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        timeout = context.eventLoop.assumeIsolated().scheduleTask(in: patience) {
            self.isOver = true
            self.refusals.noteSilence(channel)
            channel.close(promise: nil)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case TLSUserEvent.handshakeCompleted(let negotiated) = event else {
            return context.fireUserInboundEventTriggered(event)
        }
        timeout?.cancel()
        isOver = true
        do {
            let peer = HandshakePeer(
                certificate: try tls.peerCertificate?.toDERBytes(),
                serverName: nameReader.name,
                negotiatedProtocol: negotiated
            )
            try admit(peer, context)
            let pipeline = context.pipeline.syncOperations
            pipeline.removeHandler(nameReader, promise: nil)
            pipeline.removeHandler(self, promise: nil)
        } catch {
            if let refusal = error as? PeerRefusal {
                refusals.note(RefusalReason(refusal), refusal.message, context.channel)
            } else {
                let words = TLSFault.words(for: error)
                logger.debug("connection refused after its handshake", metadata: ["error": "\(words)"])
            }
            context.close(promise: nil)
        }
    }

    private func admit(_ peer: HandshakePeer, _ context: ChannelHandlerContext) throws {
        do {
            try initializer(context.channel, peer)
        } catch let refusal as DoorRefusal {
            guard let farewell = refusal.farewell else { throw refusal.fault }
            refusals.note(RefusalReason(refusal.fault), refusal.fault.message, context.channel)
            try farewell(context.channel)
        }
    }

    /// It is done, or the connection is gone, even if it never became active.
    func handlerRemoved(context: ChannelHandlerContext) {
        timeout?.cancel()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // A failed handshake: random bytes, no certificate, a wrong one. BoringSSL has sent its alert.
        timeout?.cancel()
        if !isOver {
            isOver = true
            refusals.noteFailure(error, of: tls, context.channel)
        }
        context.close(promise: nil)
    }
}
