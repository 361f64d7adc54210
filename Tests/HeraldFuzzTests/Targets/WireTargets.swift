import HeraldModel
import HeraldWire
import NIOCore

extension FuzzTarget {
    static let wire: [FuzzTarget] = [
        FuzzTarget("mqtt-server", upTo: 4096) { MQTTCheck(version: nil).run($0) },
        FuzzTarget("mqtt-5", upTo: 4096) { MQTTCheck(version: .v5).run($0) },
        FuzzTarget("mqtt-311", upTo: 4096) { MQTTCheck(version: .v311).run($0) },
        FuzzTarget("device-topics", upTo: 600, deviceTopic),
        FuzzTarget("binary-frames", upTo: 8192, binaryFrames),
        FuzzTarget("feedback", upTo: 1024, feedback),
    ]

    /// Topics and filters: one spelling each.
    @Sendable
    private static func deviceTopic(_ bytes: [UInt8]) {
        let text = String(decoding: bytes, as: UTF8.self)
        if let topic = CourierTopic(text) {
            check(topic.name.utf8.elementsEqual(text.utf8), "a topic has a second spelling")
        }
        if let filter = CourierFilter(text) {
            check(filter.name.utf8.elementsEqual(text.utf8), "a filter has a second spelling")
            check(CourierFilter(filter.name) == filter, "a filter's name is another filter")
        }
        _ = CourierFilterFault(text)
        if let id = ChannelID(topicLevel: text) {
            check(ChannelID.read(id.base64.utf8) == .channel(id), "a channel's identifier is not read again")
            check(id.topicLevel.utf8.elementsEqual(text.utf8), "a channel has a second spelling")
        }
        if case .channel(let id) = ChannelID.read(bytes) {
            check(ChannelID(topicLevel: id.topicLevel) == id, "a channel's topic level is not read again")
        }
        if let topic = Topic(text) { check(topic.name.utf8.count <= text.utf8.count, "a topic grew") }
        if let id = NotificationID(text) {
            check(id.description == text.lowercased(), "an identifier has a second spelling")
        }
        if let token = DeviceToken(text) {
            check(token.hex == text.lowercased(), "a device token has a second spelling")
            check(Hex.bytes(text) == token.bytes, "two readers of hexadecimal digits disagree")
        } else {
            check(text.utf8.count != 64 || Hex.bytes(text) == nil, "a device token is not read")
        }
        if let time = WallTime(rfc3339: text) { check(WallTime(rfc3339: time.rfc3339) == time, "a time changed") }
    }

    /// Notifications of the binary interface: the same in any pieces, and again as they were written.
    @Sendable
    private static func binaryFrames(_ bytes: [UInt8]) {
        let whole = binaryFrames([bytes[...]])
        for pieces in Pieces.ways(bytes) {
            check(binaryFrames(pieces) == whole, "the frames depend on how the bytes are cut")
        }
        for case .notification(let notification) in whole {
            var buffer = ByteBuffer()
            check(buffer.writeNotification(notification), "a notification that was read cannot be written")
            let again = BinaryFrameDecoder(payloadBytes: 2048, frameBytes: 4096).next(&buffer)
            check(again == .notification(notification), "a notification is not read as it was written")
            check(buffer.readableBytes == 0, "bytes are left over")
        }
        var buffer = ByteBuffer(bytes: bytes)
        let before = buffer.readableBytes
        let response = buffer.readErrorResponse()
        check(before - buffer.readableBytes == (response == nil ? 0 : BinaryErrorResponse.byteCount), "six bytes")
    }

    private static func binaryFrames(_ pieces: [ArraySlice<UInt8>]) -> [BinaryFrame] {
        let decoder = BinaryFrameDecoder(payloadBytes: 2048, frameBytes: 4096)
        var buffer = ByteBuffer()
        var frames: [BinaryFrame] = []
        for piece in pieces {
            buffer.writeBytes(piece)
            while let frame = decoder.next(&buffer) {
                frames.append(frame)
                if case .fault = frame { return frames }
            }
            check(buffer.readableBytes <= 5 + 4096 + piece.count, "the decoder waits for more than a frame")
        }
        return frames
    }

    @Sendable
    private static func feedback(_ bytes: [UInt8]) {
        var buffer = ByteBuffer(bytes: bytes)
        while let tuple = try? buffer.readFeedbackTuple() {
            var written = ByteBuffer()
            written.writeFeedbackTuple(tuple)
            check((try? written.readFeedbackTuple()) == tuple, "a tuple is not read as it was written")
        }
    }
}

/// MQTT packets: the same in any pieces, and again as they were written.
private struct MQTTCheck {
    /// The version that is spoken; nil for a server that awaits CONNECT.
    let version: MQTTVersion?

    private struct Reading: Equatable {
        var packets: [MQTTPacket] = []
        var error: MQTTError?
        var version: MQTTVersion?
        var refusalVersion: MQTTVersion?
    }

    func run(_ bytes: [UInt8]) {
        let whole = read([bytes[...]])
        for pieces in Pieces.ways(bytes) {
            check(read(pieces) == whole, "the packets depend on how the bytes are cut")
        }
        check(read([bytes[...]], acknowledgementsFirst: true) == whole, "the reader of acknowledgements disagrees")
        check(whole.packets.count * 2 <= bytes.count, "a packet of less than two bytes")
        for packet in whole.packets { repeats(packet, whole.version ?? .v5) }
    }

    private func decoder() -> MQTTPacketDecoder {
        version.map { MQTTPacketDecoder(version: $0, maximumPacketSize: 2048) }
            ?? MQTTPacketDecoder(awaitingConnectUpTo: 2048)
    }

    private func read(_ pieces: [ArraySlice<UInt8>], acknowledgementsFirst: Bool = false) -> Reading {
        var decoder = decoder()
        var reading = Reading()
        do throws(MQTTError) {
            for piece in pieces {
                decoder.append(ByteBuffer(bytes: piece))
                while true {
                    if acknowledgementsFirst, let identifier = decoder.nextAcknowledgement() {
                        reading.packets.append(.puback(MQTTPublishAnswer(packetIdentifier: identifier)))
                        continue
                    }
                    guard let packet = try decoder.next() else { break }
                    reading.packets.append(packet)
                }
                check(decoder.pendingBytes <= 2048, "the decoder holds more than a packet")
            }
        } catch {
            reading.error = error
            decoder.append(ByteBuffer(bytes: [0xC0, 0]))
            check((try? decoder.next()) == .some(nil), "a decoder that has failed reads on")
        }
        reading.version = decoder.version
        reading.refusalVersion = decoder.refusalVersion
        return reading
    }

    private func repeats(_ packet: MQTTPacket, _ version: MQTTVersion) {
        var buffer = ByteBuffer()
        do {
            try MQTTPacketEncoder.encode(packet, version: version, into: &buffer)
        } catch {
            // Such a string is read, and never written.
            if error.message == MQTTError.forbiddenCharacter.message { return }
            fatalError("broken property: a packet that was read cannot be written: \(packet)")
        }
        var decoder =
            packet.kind == .connect
            ? MQTTPacketDecoder(awaitingConnectUpTo: 8192)
            : MQTTPacketDecoder(version: version, maximumPacketSize: 8192)
        decoder.append(buffer)
        let again = try? decoder.next()
        check(again == .some(written(packet)), "a packet is not read as it was written: \(packet)")
        check(decoder.pendingBytes == 0, "bytes are left over")
        topics(of: packet)
    }

    /// The packet as the encoder writes it: a refusal never says that a session is present ([MQTT-3.2.2-6]).
    ///
    /// The decoder of a client reads one that does, so that the client learns the reason.
    private func written(_ packet: MQTTPacket) -> MQTTPacket {
        guard case .connack(var connack) = packet, connack.reasonCode != .success else { return packet }
        connack.isSessionPresent = false
        return .connack(connack)
    }

    private func topics(of packet: MQTTPacket) {
        switch packet {
        case .publish(let publish): _ = CourierTopic(publish.topic)
        case .subscribe(let subscribe):
            for subscription in subscribe.subscriptions where CourierFilter(subscription.filter) == nil {
                _ = CourierFilterFault(subscription.filter)
            }
        default: break
        }
    }
}
