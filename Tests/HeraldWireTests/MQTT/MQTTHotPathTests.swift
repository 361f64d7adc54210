import HeraldWire
import NIOCore
import Testing

struct MQTTHotPathTests {
    @Test func `a PUBLISH written from bytes is the packet that the encoder writes`() throws {
        let id = Array("eabeae54-14a8-11e5-b60b-1697f925ec7b".utf8)
        var block = MQTTPropertyBlock()
        block.appendUserProperty("left", "over")
        block.clear()
        block.appendMessageExpiryInterval(86_400)
        block.appendContentType("application/json")
        block.appendUserProperty("apns-id", id)
        for size in [0, 10, 300, 5120, 20_000] {
            let payload = [UInt8](repeating: 0x20, count: size)
            for packetIdentifier in [nil, UInt16(7)] {
                let publish = MQTTPublish(
                    topic: "apps/com.example.chat",
                    packetIdentifier: packetIdentifier,
                    qualityOfService: packetIdentifier == nil ? .atMostOnce : .atLeastOnce,
                    isDuplicate: packetIdentifier != nil,
                    properties: [
                        .messageExpiryInterval(86_400), .contentType("application/json"),
                        .userProperty(name: "apns-id", value: String(decoding: id, as: UTF8.self)),
                    ],
                    payload: payload
                )
                let expected = try PacketSamples.bytes(.publish(publish), .v5)
                let outgoing = MQTTOutgoingPublish(
                    topic: Array(publish.topic.utf8),
                    packetIdentifier: packetIdentifier,
                    isDuplicate: publish.isDuplicate
                )
                var buffer = ByteBuffer()
                #expect(outgoing.write(block, payload: payload, into: &buffer))
                #expect(buffer == expected)
                #expect(outgoing.size(block, payloadBytes: payload.count) == expected.readableBytes)
            }
        }
    }

    @Test func `in 3-1-1 it has no properties`() throws {
        let outgoing = MQTTOutgoingPublish(topic: Array("a".utf8), packetIdentifier: 7)
        var buffer = ByteBuffer()
        #expect(outgoing.write(nil, payload: [1, 2], into: &buffer))
        #expect(Array(buffer.readableBytesView) == [0x32, 7, 0, 1, 0x61, 0, 7, 1, 2])
        #expect(outgoing.size(nil, payloadBytes: 2) == 9)
    }

    @Test func `a topic that is too long writes nothing`() {
        let outgoing = MQTTOutgoingPublish(topic: [UInt8](repeating: 0x61, count: 65_536), packetIdentifier: nil)
        var buffer = ByteBuffer()
        #expect(!outgoing.write(nil, payload: [], into: &buffer))
        #expect(buffer.readableBytes == 0)
        var block = MQTTPropertyBlock()
        let isAppended = block.appendUserProperty("a", [UInt8](repeating: 0x61, count: 65_536))
        #expect(!isAppended)
        #expect(block.bytes.readableBytes == 0)
    }

    @Test func `plain acknowledgements are read without a packet`() throws {
        var decoder = MQTTPacketDecoder(version: .v5, maximumPacketSize: 100)
        decoder.append(ByteBuffer(bytes: [0x40, 2, 0, 1, 0x40, 3, 1, 0, 0, 0x40, 4, 0xFF, 0xFF, 0, 0, 0xC0, 0]))
        var identifiers: [UInt16] = []
        while let identifier = decoder.nextAcknowledgement() { identifiers.append(identifier) }
        #expect(identifiers == [1, 256, 0xFFFF])
        let next = try decoder.next()
        #expect(next == .pingreq)
        #expect(decoder.pendingBytes == 0)
    }

    @Test func `acknowledgements with more in them are left for the reader of packets`() throws {
        let others: [(MQTTVersion, [UInt8])] = [
            (.v5, [0x40, 3, 0, 1, 0x97]), (.v5, [0x40, 3, 0, 1, 0x10]),
            (.v5, [0x40, 9, 0, 1, 0, 5, 0x1F, 0, 2, 0x61, 0x62]),
            (.v311, [0x40, 3, 0, 1, 0]), (.v5, [0x40, 2, 0, 0]), (.v5, [0x40, 2, 0]), (.v5, [0x50, 2, 0, 1]),
            (.v5, [0x40, 3, 0, 1]),
        ]
        for (version, bytes) in others {
            var decoder = MQTTPacketDecoder(version: version, maximumPacketSize: 100)
            decoder.append(ByteBuffer(bytes: bytes))
            let identifier = decoder.nextAcknowledgement()
            #expect(identifier == nil)
            #expect(decoder.pendingBytes == bytes.count)
        }
        var decoder = MQTTPacketDecoder(awaitingConnectUpTo: 100)
        decoder.append(ByteBuffer(bytes: [0x40, 2, 0, 1]))
        let identifier = decoder.nextAcknowledgement()
        #expect(identifier == nil)
    }
}
