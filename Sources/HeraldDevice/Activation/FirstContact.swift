import HeraldTrust
import NIOCore
import NIOPosix
import NIOSSL

/// A device that meets a service for the first time, and knows nothing of it but the fingerprint in its code.
///
/// It begins a TLS handshake, looks at the certificates that the service shows, and breaks off: no request is sent, and
/// nothing of the code. If the authority that the code names is among them, the real connection is made after, with that
/// authority as the only one that is trusted: then TLS checks that the service's certificate is of that authority, and of
/// that name.
enum FirstContact {
    /// The certificate (DER) that a code names.
    /// - Throws: ``EnrollmentError/Code/untrusted`` if it is not among what the service shows,
    ///   ``EnrollmentError/Code/unreachable``.
    static func authority(
        named code: InvitationCode,
        at address: ServiceAddress,
        timeout: Duration
    ) async throws -> [UInt8] {
        guard let authority = try await chain(of: address, timeout: timeout).first(where: code.names) else {
            throw EnrollmentError(
                .untrusted,
                "the service at \(address) is not the one that the invitation code is of; it was told nothing: "
                    + "check address, port (the activation port) and code, and whether somebody is in between"
            )
        }
        return authority
    }

    private static func chain(of address: ServiceAddress, timeout: Duration) async throws -> [[UInt8]] {
        do {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.minimumTLSVersion = .tlsv12
            let context = try NIOSSLContext(configuration: tls)
            let seen = MultiThreadedEventLoopGroup.singleton.next().makePromise(of: [[UInt8]].self)
            let channel: any Channel
            do {
                channel = try await ClientBootstrap(group: seen.futureResult.eventLoop)
                    .connectTimeout(TimeAmount(timeout))
                    .channelInitializer { channel in
                        channel.eventLoop.makeCompletedFuture {
                            let handler = try NIOSSLClientHandler(
                                context: context,
                                serverHostname: isAddress(address.host) ? nil : address.host,
                                customVerificationCallback: { certificates, verdict in
                                    seen.completeWith(Result { try certificates.map { try $0.toDERBytes() } })
                                    verdict.succeed(.failed)
                                }
                            )
                            let end = FirstContactEnd(seen: seen, timeout: TimeAmount(timeout))
                            try channel.pipeline.syncOperations.addHandlers([handler, end])
                        }
                    }
                    .connect(host: address.host, port: address.port)
                    .get()
            } catch {
                seen.fail(error)
                throw error
            }
            defer { channel.close(promise: nil) }
            return try await seen.futureResult.get()
        } catch {
            throw EnrollmentError(
                .unreachable,
                "no service answers at \(address): check address and port (the activation port), and whether it runs"
            )
        }
    }

    private static func isAddress(_ host: String) -> Bool {
        (try? SocketAddress(ipAddress: host, port: 0)) != nil
    }
}

/// Sees to it that the wait ends: with the connection, or after a time.
private final class FirstContactEnd: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private struct Silence: Error {}

    private let seen: EventLoopPromise<[[UInt8]]>
    private let timeout: TimeAmount
    private var timer: Scheduled<Void>?

    init(seen: EventLoopPromise<[[UInt8]]>, timeout: TimeAmount) {
        self.seen = seen
        self.timeout = timeout
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let seen = seen
        timer = context.eventLoop.scheduleTask(in: timeout) { seen.fail(Silence()) }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
        // Of no effect where something was seen.
        seen.fail(Silence())
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        seen.fail(error)
        context.close(promise: nil)
    }
}
