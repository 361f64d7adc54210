import HeraldDoor
import HeraldModel
import HeraldTrust
import Logging
import NIOCore

/// What all connections of the binary interface and of the feedback service share.
struct BinaryService: Sendable {
    let binary: BinaryConfiguration
    let feedback: FeedbackConfiguration
    let admission: Admission
    let letterBox: any LetterBox
    let book: any FeedbackBook
    /// Where connections go that turn out to speak HTTP/2.
    let gateway: Gateway
    let clock: any WallClock
    let logger: Logger
    let metrics = BinaryMetrics()

    var intake: BinaryIntake {
        BinaryIntake(admission: admission, rules: gateway.rules.current, longestStorage: letterBox.longestStorage)
    }

    /// What HTTP/2 begins with (RFC 9113 §3.4); nothing of the binary interface does.
    static let prefaceByte = UInt8(ascii: "P")

    /// Who came.
    enum Arrival {
        /// A client without a certificate.
        case stranger
        /// A provider, in the environment that it asks for.
        case provider(ProviderCertificateIdentity, PushEnvironment)
        /// A client whose certificate is not good here.
        case unwelcome
    }

    /// Who the client is, by its certificate; `door` is the environment of names that say nothing.
    func identify(_ peer: HandshakePeer, door: PushEnvironment) -> Arrival {
        guard let certificate = peer.certificate else { return .stranger }
        let environment = peer.serverName.flatMap { PushEnvironment.named(by: $0) } ?? door
        switch admission.identify(certificate: certificate, at: clock.now()) {
        case .success(let identity) where identity.environments.contains(environment):
            return .provider(identity, environment)
        case .success:
            logger.notice("provider certificate refused", metadata: ["reason": "it is of the other environment"])
        case .failure(let refusal):
            logger.notice("provider certificate refused", metadata: ["reason": "\(refusal.message)"])
        }
        return .unwelcome
    }

    /// Puts the HTTP/2 provider connection in the place of a handler, and gives it what came.
    ///
    /// - Throws: ``GatewayError``, or an error of the channel's.
    func handOver(
        _ handler: some RemovableChannelHandler,
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
