import HeraldTrust
import HeraldWire
import NIOCore

/// Tells a device whose certificate TLS took, and the service does not, why it is not let in.
///
/// TLS has no alert for it any more once the handshake is over, and a connection that is only closed looks to the device
/// like any failure of the network: it would come again for ever. So its CONNECT is awaited and refused.
final class FarewellHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let fault: PeerRefusal
    private let patience: TimeAmount
    private var decoder: MQTTPacketDecoder
    private var deadline: Scheduled<Void>?
    private var isOver = false

    init(_ fault: PeerRefusal, _ configuration: CourierConfiguration) {
        self.fault = fault
        patience = TimeAmount(configuration.connectTimeout)
        decoder = MQTTPacketDecoder(awaitingConnectUpTo: configuration.maximumConnectBytes)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        deadline = context.eventLoop.scheduleTask(in: patience) { channel.close(promise: nil) }
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

    /// What may be better in a while is no refusal for good: a list that is late, a clock that is wrong.
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
