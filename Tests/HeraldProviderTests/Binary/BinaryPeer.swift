import Foundation
import HeraldIdentity
import HeraldListener
import HeraldModel
import HeraldTestSupport
import HeraldTrust
import HeraldWire
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

@testable import HeraldProvider

/// A service of the binary interface that does what a test says, and keeps a ledger of what it took.
final class BinaryPeer: Sendable {
    /// Received notifications.
    struct Frame: Sendable {
        /// Which connection it came on, from 1.
        let connection: Int
        /// The how-manieth it is on it, from 1.
        let index: Int
        let token: PushToken?
        let identifier: UInt32

        var isCheckpoint: Bool { token == nil }
    }

    enum Reaction: Sendable {
        case take
        case refuse(BinaryStatus)
        case answer(BinaryErrorResponse)
        /// Says nothing more, and reads on.
        case ignore
        case close
        case say([UInt8])
    }

    struct Record: Sendable {
        var frames: [Frame] = []
        var taken: [PushToken: Int] = [:]
        var connections = 0
    }

    let trust: TestTrust
    let port: Int
    private let channel: any Channel
    private let record: Records

    final class Records: Sendable {
        let record = Mutex(Record())
    }

    init(_ script: @escaping @Sendable (Frame) -> Reaction = BinaryPeer.proper) async throws {
        trust = try await TestTrust()
        let server = try trust.folder.serverCertificate()
        let context = try ListenerTLS(
            certificateChain: server.chain,
            privateKeyPEM: server.keyPEM,
            clientAuthority: PEMBundle.der(trust.folder.providerAuthority.certificate),
            clientCertificate: .required,
            applicationProtocols: [],
            newestVersion: .tlsv12
        )
        .makeContext()
        let record = Records()
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { client in
                client.eventLoop.makeCompletedFuture {
                    try client.pipeline.syncOperations.addHandlers([
                        NIOSSLServerHandler(context: context), Handler(record, script),
                    ])
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = channel.localAddress?.port ?? 0
        self.record = record
    }

    /// Takes everything but checkpoints.
    static let proper: @Sendable (Frame) -> Reaction = { $0.isCheckpoint ? .refuse(.missingDeviceToken) : .take }

    var seen: Record { record.record.withLock { $0 } }

    func close() async throws {
        try await channel.close()
    }

    /// A client's configuration, in a hurry to confirm.
    func configuration() async throws -> BinaryClientConfiguration {
        var configuration = BinaryClientConfiguration(
            host: "localhost",
            port: port,
            certificate: Array(try await trust.provider("com.example.app").pem.utf8),
            authorities: FileManager.default.contents(atPath: trust.path + "/ca.pem").map { Array($0) }
        )
        (configuration.timeout, configuration.totalTimeout) = (.patience, .patience)
        configuration.confirmAfter = .milliseconds(20)
        configuration.firstPause = .milliseconds(1)
        configuration.longestPause = .milliseconds(10)
        return configuration
    }

    static func request(_ number: Int) -> BinaryRequest {
        let token = PushToken(DeviceToken(words: (0, 0, 0, UInt64(number) + 1)))
        return BinaryRequest(token: token, payload: Array(#"{"aps":{"alert":"hi"}}"#.utf8))
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let record: Records
        private let script: @Sendable (Frame) -> Reaction
        private let decoder = BinaryFrameDecoder(payloadBytes: 2048, frameBytes: 4096)
        private var input = ByteBuffer()
        private var connection = 0
        private var index = 0
        private var isOver = false

        init(_ record: Records, _ script: @escaping @Sendable (Frame) -> Reaction) {
            self.record = record
            self.script = script
        }

        func channelActive(context: ChannelHandlerContext) {
            connection = record.record.withLock { record in
                record.connections += 1
                return record.connections
            }
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            var bytes = unwrapInboundIn(data)
            input.writeBuffer(&bytes)
            while !isOver, let frame = decoder.next(&input) { take(frame, context) }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            context.close(promise: nil)
        }

        private func take(_ content: BinaryFrame, _ context: ChannelHandlerContext) {
            index += 1
            let frame =
                switch content {
                case .notification(let notification):
                    Frame(
                        connection: connection,
                        index: index,
                        token: notification.token,
                        identifier: notification.identifier ?? 0
                    )
                case .fault(let fault):
                    Frame(connection: connection, index: index, token: nil, identifier: fault.identifier ?? 0)
                }
            if frame.isCheckpoint { isOver = true }
            let reaction = script(frame)
            record.record.withLock { record in
                record.frames.append(frame)
                if case .take = reaction, let token = frame.token { record.taken[token, default: 0] += 1 }
            }
            switch reaction {
            case .take: break
            case .refuse(let status): say(BinaryErrorResponse(status, identifier: frame.identifier), context)
            case .answer(let response): say(response, context)
            case .ignore: isOver = true
            case .close:
                isOver = true
                context.close(promise: nil)
            case .say(let bytes):
                isOver = true
                context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
            }
        }

        /// The client closes; what it still sends until then is dropped.
        private func say(_ response: BinaryErrorResponse, _ context: ChannelHandlerContext) {
            isOver = true
            var buffer = ByteBuffer()
            buffer.writeErrorResponse(response)
            context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
        }
    }
}
