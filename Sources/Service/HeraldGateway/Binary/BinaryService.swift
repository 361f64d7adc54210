import HeraldListener
import HeraldMailbox
import HeraldModel
import HeraldTrust
import Logging
import NIOCore

/// The dependencies of all connections of the binary interface and the feedback service.
struct BinaryService: Sendable {
    let binary: BinaryConfiguration
    let feedback: FeedbackConfiguration
    let admission: Admission
    let sink: any NotificationSink
    let feedbackSource: any FeedbackSource
    /// Nil for a node that stands alone.
    let confirmations: RefusalConfirmations?
    /// Takes connections that speak HTTP/2.
    let gateway: Gateway
    let clock: any WallClock
    let logger: Logger
    let metrics = BinaryMetrics()

    var validator: BinaryValidator {
        BinaryValidator(admission: admission, rules: gateway.rules.current, longestStorage: sink.longestStorage)
    }

    /// The first byte of HTTP/2 (RFC 9113 §3.4), which no binary notification begins with.
    static let prefaceByte = UInt8(ascii: "P")

    /// Identifies a client by its certificate; `listener` is the environment of names that imply none.
    /// - Returns: The provider and the environment that it selected; nil without a certificate, or with one that is not valid
    ///   here.
    func identify(
        _ peer: HandshakePeer,
        listener: PushEnvironment
    ) -> (identity: ProviderCertificateIdentity, environment: PushEnvironment)? {
        guard let certificate = peer.certificate else { return nil }
        let environment = peer.serverName.flatMap { PushEnvironment.named(by: $0) } ?? listener
        switch admission.identify(certificate: certificate, at: clock.now()) {
        case .success(let identity) where identity.environments.contains(environment):
            return (identity, environment)
        case .success:
            logger.notice("provider certificate refused", metadata: ["reason": "it is for the other environment"])
        case .failure(let refusal):
            logger.notice("provider certificate refused", metadata: ["reason": "\(refusal.message)"])
        }
        return nil
    }

    /// Replaces a handler by an HTTP/2 connection, and passes the received bytes on to it.
    ///
    /// - Throws: ``GatewayError``, or an error of the channel.
    func handOver(
        from handler: some RemovableChannelHandler,
        _ peer: HandshakePeer,
        _ context: ChannelHandlerContext,
        _ bytes: ByteBuffer
    ) throws {
        let connection = try gateway.connection(for: peer, on: context.channel)
        try context.channel.syncOptions?.setOption(.allowRemoteHalfClosure, value: false)
        let pipeline = context.pipeline.syncOperations
        try pipeline.addHandler(connection, position: .after(handler))
        context.fireChannelRead(NIOAny(bytes))
        pipeline.removeHandler(handler, promise: nil)
    }
}
