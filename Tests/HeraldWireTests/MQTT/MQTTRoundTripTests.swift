import NIOCore
import Testing

@testable import HeraldWire

struct MQTTRoundTripTests {
    @Test(arguments: [
        "\u{0}", "a\tb", "\u{85}", "\(Unicode.Scalar(0xFDD0) ?? "x")", "\(Unicode.Scalar(0xFFFF) ?? "x")",
        "\(Unicode.Scalar(0x1FFFE) ?? "x")",
    ])
    func `[MQTT-1.5.4-2] nothing is written that a receiver may refuse`(text: String) {
        let packets: [MQTTPacket] = [
            .publish(MQTTPublish(topic: text, qualityOfService: .atMostOnce, payload: [])),
            .disconnect(MQTTDisconnect(reasonCode: .success, properties: [.reasonString(text)])),
            .disconnect(MQTTDisconnect(reasonCode: .success, properties: [.userProperty(name: "a", value: text)])),
        ]
        for packet in packets {
            var bytes = ByteBuffer()
            #expect(throws: MQTTError.self) { try MQTTPacketEncoder.encode(packet, version: .v5, into: &bytes) }
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `every packet is read as it was written`(version: MQTTVersion) throws {
        for packet in PacketSamples.samples(version) {
            let bytes = try PacketSamples.bytes(packet, version)
            #expect(try decode(Array(bytes.readableBytesView), version) == [packet])
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `packets that arrive one byte at a time are read`(version: MQTTVersion) throws {
        var decoder = MQTTPacketDecoder(version: version, maximumPacketSize: 8192)
        var packets: [MQTTPacket] = []
        for packet in PacketSamples.samples(version) {
            for byte in try PacketSamples.bytes(packet, version).readableBytesView {
                decoder.append(ByteBuffer(bytes: [byte]))
                while let packet = try decoder.next() { packets.append(packet) }
            }
        }
        #expect(packets == PacketSamples.samples(version))
        #expect(decoder.pendingBytes == 0)
    }

    @Test(arguments: MQTTVersion.allCases, [2, 3, 5, 7, 64, 1000])
    func `packets that arrive in pieces of any size are read`(version: MQTTVersion, size: Int) throws {
        var stream = ByteBuffer()
        for packet in PacketSamples.samples(version) {
            try MQTTPacketEncoder.encode(packet, version: version, into: &stream)
        }
        var decoder = MQTTPacketDecoder(version: version, maximumPacketSize: 8192)
        var packets: [MQTTPacket] = []
        while let piece = stream.readSlice(length: min(size, stream.readableBytes)), piece.readableBytes > 0 {
            decoder.append(piece)
            while let packet = try decoder.next() { packets.append(packet) }
        }
        #expect(packets == PacketSamples.samples(version))
    }

    @Test(arguments: MQTTVersion.allCases)
    func `a decoder that awaits CONNECT learns the version from it`(version: MQTTVersion) throws {
        var decoder = MQTTPacketDecoder(awaitingConnectUpTo: 8192)
        #expect(decoder.version == nil)
        decoder.append(try PacketSamples.bytes(PacketSamples.samples(version)[0], version))
        decoder.append(try PacketSamples.bytes(.pingreq, version))
        let packet1 = try decoder.next()
        #expect(packet1 == PacketSamples.samples(version)[0])
        #expect(decoder.version == version)
        let packet2 = try decoder.next()
        #expect(packet2 == .pingreq)
        let packet3 = try decoder.next()
        #expect(packet3 == nil)
    }

    @Test func `[MQTT-1.5.4-3] a byte order mark stays where it is`() throws {
        let packet = MQTTPacket.publish(MQTTPublish(topic: "\u{FEFF}a\u{FEFF}", payload: []))
        let bytes = try PacketSamples.bytes(packet, .v5)
        #expect(try decode(Array(bytes.readableBytesView)) == [packet])
        #expect(Array(bytes.readableBytesView).dropFirst(4).starts(with: [0xEF, 0xBB, 0xBF]))
    }

    @Test(arguments: [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (2_097_151, 3), (2_097_152, 4)])
    func `[MQTT-1.5.5-1] a remaining length takes as few bytes as it needs`(length: Int, size: Int) throws {
        guard length >= 6 else { return }
        let publish = MQTTPublish(topic: "abc", payload: [UInt8](repeating: 1, count: length - 6))
        let bytes = try PacketSamples.bytes(.publish(publish), .v5)
        #expect(bytes.readableBytes == 1 + size + length)
        #expect(try decode(Array(bytes.readableBytesView), maximum: 3_000_000) == [.publish(publish)])
    }

    @Test func `[MQTT-3.2.2-6] a refusal says that no session is present`() throws {
        let connack = MQTTPacket.connack(MQTTConnack(isSessionPresent: true, reasonCode: .notAuthorized))
        #expect(Array(try PacketSamples.bytes(connack, .v5).readableBytesView) == [0x20, 3, 0, 0x87, 0])
        #expect(Array(try PacketSamples.bytes(connack, .v311).readableBytesView) == [0x20, 2, 0, 5])
    }

    @Test func `3-1-1 has one code for a refused filter`() throws {
        let suback = MQTTPacket.suback(
            MQTTSubscriptionAnswer(packetIdentifier: 1, reasonCodes: [.grantedQoS1, .notAuthorized])
        )
        #expect(Array(try PacketSamples.bytes(suback, .v311).readableBytesView) == [0x90, 4, 0, 1, 1, 0x80])
    }

    @Test func `a packet that MQTT cannot carry is an error, and leaves the buffer as it was`() throws {
        let long = String(repeating: "a", count: 65_536)
        let wrong: [MQTTPacket] = [
            .publish(MQTTPublish(topic: long, payload: [])),
            .publish(MQTTPublish(topic: "a\0b", payload: [])),
            .publish(MQTTPublish(topic: "a", qualityOfService: .atLeastOnce, payload: [])),
            .publish(
                MQTTPublish(
                    topic: "a",
                    properties: [.correlationData([UInt8](repeating: 0, count: 65_536))],
                    payload: []
                )
            ),
            .puback(MQTTPublishAnswer(packetIdentifier: 0)),
        ]
        for packet in wrong {
            var buffer = ByteBuffer(bytes: [1, 2, 3])
            #expect(throws: MQTTError.self) { try MQTTPacketEncoder.encode(packet, version: .v5, into: &buffer) }
            #expect(buffer == ByteBuffer(bytes: [1, 2, 3]))
        }
        var buffer = ByteBuffer()
        #expect(throws: MQTTError.self) {
            try MQTTPacketEncoder.encode(.auth(MQTTAuth(reasonCode: .success)), version: .v311, into: &buffer)
        }
    }
}
