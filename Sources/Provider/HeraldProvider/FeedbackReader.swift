public import HeraldModel
import HeraldWire
import NIOCore
import NIOSSL

/// An entry of the feedback list: a device token that no longer works.
public struct FeedbackEntry: Hashable, Sendable {
    /// When the service found that the app was removed; a token registered after this moment is valid again.
    ///
    /// In Herald it is the time of the first notification that found the app gone.
    public let time: WallTime
    /// The token's bytes.
    public let token: [UInt8]

    /// The token in hexadecimal digits, lower case.
    public var tokenHex: String { Hex.text(token) }
}

/// Reads the feedback list of a provider certificate: the tokens of its app that died since the last reading.
///
/// Source: "The Feedback Service" in the Local and Remote Notification Programming Guide. The service deletes a list
/// that was read to the end. It repeats a list that was not.
/// - Parameters:
///   - configuration: Host, port and certificate. ``ProviderConfiguration/timeout`` limits the connect, and each pause
///     between two reads.
///   - body: Receives each entry as it arrives, oldest first.
/// - Throws: ``ProviderError``, `CancellationError`, or the error that `body` throws.
public func readFeedback(
    _ configuration: ProviderConfiguration,
    _ body: (FeedbackEntry) throws -> Void
) async throws {
    guard case .certificate = configuration.credential.kind else {
        throw ProviderError(.badCredential, "the feedback service needs a provider certificate, not a key")
    }
    let connector = try Connector(configuration)
    do {
        try await FeedbackReader(connector: connector).read(body)
    } catch let error as ProviderError {
        throw error
    } catch let error as CancellationError {
        throw error
    } catch let error as FeedbackFault {
        throw ProviderError(.badAnswer, "not a feedback service (\(error.message)): check host and port")
    } catch let error where ProviderError.isOfNetwork(error) {
        throw ProviderError(connecting: error, to: connector)
    }
}

/// One connection to the feedback service.
private struct FeedbackReader {
    let connector: Connector

    func read(_ body: (FeedbackEntry) throws -> Void) async throws {
        let pause = TimeAmount(connector.timeout)
        let channel = try await connector.open { channel in
            try channel.pipeline.syncOperations.addHandlers([
                IdleStateHandler(readTimeout: pause), ReadTimeoutHandler(),
            ])
            return try NIOAsyncChannel<ByteBuffer, Never>(wrappingChannelSynchronously: channel)
        }
        .get()
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
        "the service closed the connection before the end of the list: it refused the certificate (revoked, or for the "
            + "other environment), or it is stopping. It repeats the list at the next reading"
    )
}

/// Closes a connection on which nothing arrives in time.
private final class ReadTimeoutHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case IdleStateHandler.IdleStateEvent.read = event else {
            return context.fireUserInboundEventTriggered(event)
        }
        context.fireErrorCaught(ProviderError(.timedOut, "the feedback list does not end in time"))
        context.close(promise: nil)
    }
}
