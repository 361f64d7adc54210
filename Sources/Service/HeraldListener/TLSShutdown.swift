package import NIOCore
import NIOSSL

/// Ends TLS from this side: sends close_notify, then waits two seconds at most for the peer.
///
/// NIOSSL's own shutdown starts a timer that outlives a reset by the peer. Until it fires, the timer keeps the handler,
/// its buffers and BoringSSL's state: two seconds' worth of gone connections. Closing only the output starts no timer.
/// So this handler sits in front of TLS, keeps the half-close from the socket (a FIN would be one more packet), and closes
/// the socket when the wait is over.
package final class TLSShutdown: ChannelOutboundHandler, DeadlineHolder {
    package typealias OutboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    /// How long to wait for a peer that does not answer; slow links need a round trip.
    package static let longestWait = TimeAmount.seconds(2)

    private let wheel: DeadlineWheel
    private var context: ChannelHandlerContext?
    private var registration: DeadlineRegistration?
    package private(set) var deadline: NIODeadline?

    private init(_ wheel: DeadlineWheel) {
        self.wheel = wheel
    }

    /// Begins the shutdown for a handler behind TLS; earlier writes are still sent.
    ///
    /// Without TLS in the pipeline it closes the channel.
    package static func begin(_ context: ChannelHandlerContext, wheel: DeadlineWheel) {
        guard context.tls != nil else { return context.close(promise: nil) }
        beginWithTLS(context, wheel: wheel)
    }

    static func beginWithTLS(_ context: ChannelHandlerContext, wheel: DeadlineWheel) {
        do {
            try context.pipeline.syncOperations.addHandler(TLSShutdown(wheel), position: .first)
            context.close(mode: .output, promise: nil)
        } catch {
            // The channel is closed already.
            context.close(promise: nil)
        }
    }

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        deadline = context.eventLoop.now + TLSShutdown.longestWait
        registration = wheel.add(self)
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        registration?.cancel()
        registration = nil
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
    /// Closes the socket of a handler behind TLS without close_notify, and without waiting for the peer's.
    ///
    /// If this side has not ended TLS before, the peer can tell that the stream was cut off.
    package func closeTransport() {
        // A close that starts at TLS's context passes the TLS handler by.
        (tls ?? self).close(promise: nil)
    }

    fileprivate var tls: ChannelHandlerContext? {
        try? pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self)
    }
}
