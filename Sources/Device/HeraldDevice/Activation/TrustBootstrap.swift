import HeraldIdentity
import HeraldModel
import NIOCore
import NIOPosix
import NIOSSL

/// Establishes trust in a service of which only the fingerprint in the invitation code is known.
///
/// It begins a TLS handshake, reads the certificates that the service presents, and aborts: no request and no part of the
/// code is sent. If the authority of the code is among the certificates, the device connects again and trusts only that
/// authority: TLS then verifies the service's certificate and its name.
enum TrustBootstrap {
    /// The authority (DER) that a code names.
    /// - Throws: ``EnrollmentError/Code/untrusted`` if the service does not present it, ``EnrollmentError/Code/unreachable``.
    static func authority(
        named code: InvitationCode,
        at address: ServiceAddress,
        timeout: Duration
    ) async throws -> [UInt8] {
        guard let authority = try await chain(of: address, timeout: timeout).first(where: code.names) else {
            throw EnrollmentError(
                .untrusted,
                "the service at \(address) is not the one that issued the invitation code; nothing was sent to it: "
                    + "check address, port (the activation port) and code, and whether somebody intercepts the connection"
            )
        }
        return authority
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
                                    seen.completeWith(Result { try certificates.map { try $0.toDERBytes() } })
                                    verdict.succeed(.failed)
                                }
                            )
                            try channel.pipeline.syncOperations.addHandler(handler)
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
            let timer = channel.eventLoop.scheduleTask(in: TimeAmount(timeout)) { seen.fail(NoCertificates()) }
            defer {
                timer.cancel()
                channel.close(promise: nil)
            }
            return try await seen.futureResult.get()
        } catch {
            throw EnrollmentError(
                .unreachable,
                "no service answers at \(address): check address and port (the activation port), and that it is running"
            )
        }
    }

    private struct NoCertificates: Error {}
}
