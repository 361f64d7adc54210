import HeraldTrust
import HeraldWire
import NIOCore

/// Refuses a device whose certificate TLS accepted and the service does not, with the reason in CONNACK.
///
/// Once the handshake is over, TLS has no alert for it. A connection that is only closed looks to the device like a failure
/// of the network, and it would connect again for ever. So the service waits for its CONNECT, and refuses that.
final class RefusedDeviceHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let fault: PeerRefusal
    private let timeout: TimeAmount
    private var decoder: MQTTPacketDecoder
    private var deadline: Scheduled<Void>?
    private var isOver = false

    init(_ fault: PeerRefusal, _ configuration: CourierConfiguration) {
        self.fault = fault
        timeout = TimeAmount(configuration.connectTimeout)
        decoder = MQTTPacketDecoder(awaitingConnectUpTo: configuration.maximumConnectBytes)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        deadline = context.eventLoop.scheduleTask(in: timeout) { channel.close(promise: nil) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isOver else { return }
        decoder.append(unwrapInboundIn(data))
        do {
            guard let packet = try decoder.next() else { return }
            isOver = true
            if case .connect(let connect) = packet { refuse(connect.version, context) }
        } catch {
            isOver = true
        }
        context.close(promise: nil)
    }

    private func refuse(_ version: MQTTVersion, _ context: ChannelHandlerContext) {
        let properties: MQTTProperties = version == .v5 ? [.reasonString(fault.message)] : []
        var bytes = ByteBuffer()
        let connack = MQTTPacket.connack(MQTTConnack(reasonCode: code, properties: properties))
        // A packet of constant parts always fits.
        guard (try? MQTTPacketEncoder.encode(connack, version: version, into: &bytes)) != nil else { return }
        context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
    }

    /// A fault that may pass is not a final refusal: a late revocation list, a wrong clock.
    private var code: MQTTReasonCode {
        switch fault.code {
        case .revocationUnknown, .notYetValid: .serverUnavailable
        default: .notAuthorized
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}
