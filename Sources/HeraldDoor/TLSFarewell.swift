package import NIOCore
import NIOSSL

/// Ends a TLS connection from this side: says so to the peer, and waits some seconds for its answer, or its end.
///
/// NIOSSL does the same with a timer that stays when the peer resets the connection, as most do, and until it fires keeps
/// the handler, its buffers and BoringSSL's state: memory of two seconds' worth of gone connections, that new ones find in
/// no cache. To close its output alone takes NIOSSL no timer. So this stands before TLS for what is left of the
/// connection, keeps that end from the socket, where it would be one packet more, and closes the socket when the wait is
/// over.
package final class TLSFarewell: ChannelOutboundHandler, DeadlineHolder {
    package typealias OutboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    /// How long a peer that does not answer is waited for: slow links need a round trip.
    package static let longestWait = TimeAmount.seconds(2)

    private let wheel: DeadlineWheel
    private var context: ChannelHandlerContext?
    private var place: DeadlinePlace?
    package private(set) var deadline: NIODeadline?

    private init(_ wheel: DeadlineWheel) {
        self.wheel = wheel
    }

    /// Says good-bye on the connection of a handler behind TLS; what was written before is sent.
    ///
    /// Where there is no TLS, the channel is closed.
    package static func say(_ context: ChannelHandlerContext, wheel: DeadlineWheel) {
        if context.tls != nil {
            begin(context, wheel: wheel)
        } else {
            context.close(promise: nil)
        }
    }

    static func begin(_ context: ChannelHandlerContext, wheel: DeadlineWheel) {
        do {
            try context.pipeline.syncOperations.addHandler(TLSFarewell(wheel), position: .first)
            context.close(mode: .output, promise: nil)
        } catch {
            // The channel is closed already.
            context.close(promise: nil)
        }
    }

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        deadline = context.eventLoop.now + TLSFarewell.longestWait
        place = wheel.add(self)
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        place?.leave()
        place = nil
    }

    package func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if case .output = mode {
            promise?.succeed(())
        } else {
            context.close(mode: mode, promise: promise)
        }
    }

    package func deadlinePassed() {
        deadline = nil
        context?.close(promise: nil)
    }
}

extension ChannelHandlerContext {
    /// Closes the socket of a handler behind TLS without a word: nobody would hear it.
    package func closeWithoutFarewell() {
        // What is asked of TLS's own place goes on from there.
        (tls ?? self).close(promise: nil)
    }

    /// The place of TLS in this pipeline.
    fileprivate var tls: ChannelHandlerContext? {
        try? pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self)
    }
}
