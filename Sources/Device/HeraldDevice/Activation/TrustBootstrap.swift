import HeraldIdentity
import HeraldModel
import NIOCore
import NIOPosix
import NIOSSL

/// Establishes trust in a service of which only the fingerprint in the invitation code is known.
///
/// It makes a TLS handshake, reads the certificates that the service presents, and disconnects: no request and no part of
/// the code is sent. The handshake is completed, so that the service does not count a refusal of its certificate. If the
/// authority of the code is among the certificates, the device connects again and trusts only that authority: TLS then
/// verifies the service's certificate and its name.
enum TrustBootstrap {
    /// The longest silence of a server that has accepted the connection.
    private static let longestSilence = Duration.seconds(10)

    /// The authority (DER) that a code names.
    /// - Throws: ``EnrollmentError/Code/untrusted`` if the service does not present it, ``EnrollmentError/Code/unreachable``.
    static func authority(
        named code: InvitationCode,
        at address: ServiceAddress,
        timeout: Duration
    ) async throws -> [UInt8] {
        if let authority = try await chain(of: address, timeout: timeout).first(where: code.names) { return authority }
        // It is asked only what everybody may know.
        let stranger = try EnrollmentClient(address, authorities: nil, timeout: min(timeout, longestSilence))
        guard (try? await stranger.description()) != nil else {
            throw wrongPort(address, "does not say where devices connect")
        }
        throw EnrollmentError(
            .untrusted,
            "the service at \(address) is not the one that issued the invitation code; the code was not sent to it: check "
                + "address and code, and whether somebody intercepts the connection"
        )
    }

    private static func wrongPort(_ address: ServiceAddress, _ why: String) -> EnrollmentError {
        EnrollmentError(
            .unreachable,
            "the server at \(address) \(why), so it is not an activation listener; the code was not sent to it: name the "
                + "service's activation port in service (\(ServiceAddress.defaultPort), unless the service has another)"
        )
    }

    private static func chain(of address: ServiceAddress, timeout: Duration) async throws -> [[UInt8]] {
        do {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.minimumTLSVersion = .tlsv12
            // The invitation tells which authority to trust. A machine may have none of its own (no `ca-certificates`).
            tls.trustRoots = .certificates([])
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
                                serverHostname: NumericAddress(address.host) == nil ? address.host : nil,
                                customVerificationCallback: { certificates, verdict in
                                    verdict.succeed(.certificateVerified)
                                    seen.completeWith(Result { try certificates.map { try $0.toDERBytes() } })
                                }
                            )
                            try channel.pipeline.syncOperations.addHandlers(handler, PlainServerFinder(seen))
                        }
                    }
                    .connect(host: LocalName.resolvable(address.host), port: address.port)
                    .get()
            } catch {
                seen.fail(error)
                throw error
            }
            // A name with several addresses has a channel for each that is tried. Only the one that was chosen ends the wait;
            // neither end has an effect if certificates were received.
            channel.closeFuture.whenComplete { _ in seen.fail(NoCertificates()) }
            let silence = TimeAmount(min(timeout, longestSilence))
            let timer = channel.eventLoop.scheduleTask(in: silence) { seen.fail(Silence()) }
            defer {
                timer.cancel()
                channel.close(promise: nil)
            }
            return try await seen.futureResult.get()
        } catch is Silence {
            throw wrongPort(address, "accepts the connection and stays silent")
        } catch is PlainServer {
            throw wrongPort(address, "does not speak TLS")
        } catch {
            throw EnrollmentError(
                .unreachable,
                "no service answers at \(address): check address and port (the activation port), and that it is running",
                mayPass: error is NoCertificates
            )
        }
    }

    private struct NoCertificates: Error {}
    private struct Silence: Error {}
    fileprivate struct PlainServer: Error {}
}

/// Notices that the server does not speak TLS.
private final class PlainServerFinder: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let seen: EventLoopPromise<[[UInt8]]>

    init(_ seen: EventLoopPromise<[[UInt8]]>) { self.seen = seen }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if TLSFault(error) == .notTLS { seen.fail(TrustBootstrap.PlainServer()) }
        context.fireErrorCaught(error)
    }
}
