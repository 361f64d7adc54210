import HeraldWire
import NIOCore

/// Bytes to packets and back, on the device's side.
final class DeviceCodec: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = MQTTPacket
    typealias OutboundIn = MQTTPacket
    typealias OutboundOut = ByteBuffer

    // A notification of 5 KiB with its properties, and room to spare.
    private var decoder = MQTTPacketDecoder(version: .v5, maximumPacketSize: 64 * 1024)

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        decoder.append(unwrapInboundIn(data))
        do {
            while let packet = try decoder.next() { context.fireChannelRead(wrapInboundOut(packet)) }
        } catch {
            context.fireErrorCaught(error)
            context.close(promise: nil)
        }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        var buffer = context.channel.allocator.buffer(capacity: 64)
        do {
            try MQTTPacketEncoder.encode(unwrapOutboundIn(data), version: .v5, into: &buffer)
            context.write(wrapOutboundOut(buffer), promise: promise)
        } catch {
            promise?.fail(error)
        }
    }
}
