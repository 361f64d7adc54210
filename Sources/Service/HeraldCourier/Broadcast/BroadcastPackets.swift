import HeraldModel
import HeraldWire
import NIOCore

/// A broadcast as PUBLISH packets: one for each version and quality of service, written once for all devices.
///
/// Only the packet identifier differs between devices; it is set in each device's copy.
final class BroadcastPackets: Sendable {
    let broadcast: Broadcast
    private let topicBytes: Int
    private let forms: [ByteBuffer]

    /// Writes the packets as they are at `now`, on which the message expiry interval depends.
    ///
    /// `properties` is overwritten.
    init(_ broadcast: Broadcast, topic: [UInt8], now: WallTime, _ properties: inout MQTTPropertyBlock) {
        self.broadcast = broadcast
        topicBytes = topic.count
        properties.describe(broadcast, now: now)
        forms = Self.kinds.map { version, qualityOfService in
            var buffer = ByteBuffer()
            let publish = MQTTOutgoingPublish(topic: topic, packetIdentifier: qualityOfService > 0 ? 1 : nil)
            _ = publish.write(version == .v5 ? properties : nil, payload: broadcast.payload, into: &buffer)
            return buffer
        }
    }

    private static let kinds: [(MQTTVersion, UInt8)] = [(.v311, 0), (.v311, 1), (.v5, 0), (.v5, 1)]

    private func form(_ version: MQTTVersion, _ qualityOfService: UInt8) -> ByteBuffer {
        forms[(version == .v5 ? 2 : 0) + (qualityOfService > 0 ? 1 : 0)]
    }

    /// Bytes of the whole packet.
    func size(_ version: MQTTVersion, _ qualityOfService: UInt8) -> Int {
        form(version, qualityOfService).readableBytes
    }

    /// Appends the packet; `packetIdentifier` is nil at QoS 0.
    func write(_ version: MQTTVersion, packetIdentifier: UInt16?, into buffer: inout ByteBuffer) {
        let form = form(version, packetIdentifier == nil ? 0 : 1)
        let start = buffer.writerIndex
        buffer.writeImmutableBuffer(form)
        guard let packetIdentifier else { return }
        // Fixed header, then the topic with its length, then the identifier (MQTT 5 §3.3.2.2).
        let offset = headerBytes(form) + 2 + topicBytes
        buffer.setInteger(packetIdentifier, at: start + offset)
    }

    /// The packet type, and the remaining length in one to four bytes (MQTT 5 §1.5.5).
    private func headerBytes(_ form: ByteBuffer) -> Int {
        let length = form.readableBytesView.dropFirst().prefix(4)
        return 2 + length.prefix { $0 & 0x80 != 0 }.count
    }
}
