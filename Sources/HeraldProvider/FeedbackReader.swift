public import HeraldModel
import HeraldWire
import NIOCore
import NIOPosix
import NIOSSL

/// A device token that no longer works, as the feedback service reports it.
public struct FeedbackEntry: Hashable, Sendable {
    /// When the app was found to be gone from the device; a token that was registered later is good again.
    public let time: WallTime
    /// The token's bytes.
    public let token: [UInt8]

    /// The token in hexadecimal digits, lower case.
    public var tokenHex: String { Hex.text(token) }
}

/// Reads the feedback list of a provider certificate: the tokens of its app that died since it was read last ("The
/// Feedback Service" in the Local and Remote Notification Programming Guide).
///
/// The service forgets what was read to the end; what was not is reported again.
/// - Parameters:
///   - configuration: Where to, and as whom; by certificate. The time-out is that of each pause.
///   - body: Called with each entry as it arrives, the oldest first.
/// - Throws: ``ProviderError``; what `body` throws.
public func readFeedback(
    _ configuration: ProviderConfiguration,
    _ body: (FeedbackEntry) throws -> Void
) async throws {
    guard case .certificate = configuration.credential.kind else {
        throw ProviderError(.badCredential, "the feedback service knows providers by their certificate: bring one")
    }
    let context = try ProviderTLS.context(configuration)
    do {
        try await FeedbackReader(configuration: configuration, context: context).read(body)
    } catch let error as ProviderError {
        throw error
    } catch let error as CancellationError {
        throw error
    } catch let error as FeedbackFault {
        throw ProviderError(.badAnswer, "this is no feedback service (\(error.message)): check host and port")
    } catch let error where ProviderError.isOfNetwork(error) {
        throw ProviderError(connecting: error, host: configuration.host, port: configuration.port)
    }
}

/// One connection to the feedback service.
private struct FeedbackReader {
    let configuration: ProviderConfiguration
    let context: NIOSSLContext

    func read(_ body: (FeedbackEntry) throws -> Void) async throws {
        let (host, context, pause) = (configuration.host, context, TimeAmount(configuration.timeout))
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connectTimeout(pause)
            .connect(host: host, port: configuration.port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    // An address has no name to ask for; it is compared with those in the certificate all the same.
                    let isAddress = (try? SocketAddress(ipAddress: host, port: 0)) != nil
                    let tls = try NIOSSLClientHandler(context: context, serverHostname: isAddress ? nil : host)
                    try channel.pipeline.syncOperations.addHandlers([
                        tls, IdleStateHandler(readTimeout: pause), PauseLimit(),
                    ])
                    return try NIOAsyncChannel<ByteBuffer, Never>(wrappingChannelSynchronously: channel)
                }
            }
        try await channel.executeThenClose { inbound in
            var pending = ByteBuffer()
            do {
                for try await var bytes in inbound {
                    pending.writeBuffer(&bytes)
                    while let tuple = try pending.readFeedbackTuple() {
                        let time = WallTime(seconds: Int64(tuple.time))
                        try body(FeedbackEntry(time: time, token: tuple.token))
                    }
                    pending.discardReadBytes()
                }
            } catch NIOSSLError.uncleanShutdown {
                throw Self.cutOff
            }
            guard pending.readableBytes == 0 else { throw Self.cutOff }
        }
    }

    private static let cutOff = ProviderError(
        .unreachable,
        "the service ended the connection before the end of the list: it does not take the certificate (revoked, or of "
            + "the other environment), or it stops; what was not read to the end is reported again"
    )
}

/// Ends a connection on which nothing comes any more.
private final class PauseLimit: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case IdleStateHandler.IdleStateEvent.read = event else {
            return context.fireUserInboundEventTriggered(event)
        }
        context.fireErrorCaught(ProviderError(.timedOut, "the service does not end its list in time"))
        context.close(promise: nil)
    }
}
