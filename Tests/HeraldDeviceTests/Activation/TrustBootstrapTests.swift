import HeraldIdentity
import HeraldModel
import HeraldTestSupport
import NIOCore
import NIOPosix
import Testing

@testable import HeraldDevice

/// Ports of other servers, at which a device learns nothing.
struct TrustBootstrapTests {
    /// Answers whatever it is asked, or stays silent.
    private final class Answering: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let answer: String?

        init(_ answer: String?) { self.answer = answer }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard let answer else { return }
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: answer)), promise: nil)
        }
    }

    @Test(
        arguments: [(nil, "stays silent"), ("HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak TLS")]
            as [(String?, String)]
    )
    func `a port of another server is told, with the setting, and not tried again`(
        answer: String?,
        words: String
    ) async throws {
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Answering(answer))
                }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        let address = ServiceAddress(host: "127.0.0.1", port: try #require(server.localAddress?.port))
        let error = try await #require(throws: EnrollmentError.self) {
            try await TrustBootstrap.authority(
                named: InvitationCode(authority: [1, 2, 3]),
                at: address,
                // Silence has a limit of its own.
                timeout: .patience
            )
        }
        #expect(error.message.contains(words) && error.message.contains("activation port in service"))
        #expect(!error.mayPass)
        try await server.close()
    }
}
