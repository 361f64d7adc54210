import NIOCore
import Testing

@testable import HeraldWire

/// Bytes that no peer should send, and the reason code with which each is refused.
struct Hostile: CustomTestStringConvertible, Sendable {
    let name: String
    let version: MQTTVersion?
    let bytes: [UInt8]
    let code: MQTTReasonCode

    init(_ name: String, _ version: MQTTVersion?, _ bytes: [UInt8], code: MQTTReasonCode) {
        self.name = name
        self.version = version
        self.bytes = bytes
        self.code = code
    }

    var testDescription: String { name }

    /// A CONNECT of version 5 with the given flags, the length of its properties, properties and payload.
    static func connect5(
        _ name: String,
        _ flags: UInt8,
        properties: [UInt8],
        payload: [UInt8],
        code: MQTTReasonCode
    ) -> Hostile {
        let body = [0, 4] + Array("MQTT".utf8) + [5, flags, 0, 60, UInt8(properties.count)] + properties + payload
        return Hostile(name, nil, [0x10, UInt8(body.count)] + body, code: code)
    }

    static func connect3(_ name: String, _ flags: UInt8, _ payload: [UInt8], code: MQTTReasonCode) -> Hostile {
        let body = [0, 4] + Array("MQTT".utf8) + [4, flags, 0, 60] + payload
        return Hostile(name, nil, [0x10, UInt8(body.count)] + body, code: code)
    }
}

struct MQTTHostileInputTests {
    static let framing: [Hostile] = [
        Hostile("[MQTT-3.1.0-1] a packet before CONNECT", nil, [0xC0, 0], code: .protocolError),
        Hostile("an HTTP request", nil, Array("GET / HTTP/1.1\r\n\r\n".utf8), code: .protocolError),
        Hostile("a kind that does not exist, first", nil, [0x00], code: .malformedPacket),
        Hostile("a kind that does not exist", .v5, [0x00, 0], code: .malformedPacket),
        Hostile("AUTH in 3.1.1", .v311, [0xF0, 0], code: .malformedPacket),
        Hostile("[MQTT-2.1.3-1] CONNECT with flags", nil, [0x11], code: .malformedPacket),
        Hostile("[MQTT-2.1.3-1] PINGREQ with flags", .v5, [0xC1, 0], code: .malformedPacket),
        Hostile("[MQTT-2.1.3-1] PUBACK with flags", .v5, [0x42, 2, 0, 1], code: .malformedPacket),
        Hostile("[MQTT-3.6.1-1] PUBREL without its flag", .v5, [0x60, 2, 0, 1], code: .malformedPacket),
        Hostile(
            "[MQTT-3.8.1-1] SUBSCRIBE without its flag",
            .v5,
            [0x80, 6, 0, 1, 0, 0, 1, 0x61],
            code: .malformedPacket
        ),
        Hostile(
            "[MQTT-3.10.1-1] UNSUBSCRIBE without its flag",
            .v5,
            [0xA0, 6, 0, 1, 0, 0, 1, 0x61],
            code: .malformedPacket
        ),
        Hostile("[MQTT-3.14.1-1] DISCONNECT with flags", .v5, [0xE1, 0], code: .malformedPacket),
        Hostile("[MQTT-3.15.1-1] AUTH with flags", .v5, [0xF4, 0], code: .malformedPacket),
        Hostile(
            "[MQTT-1.5.5-1] a remaining length that is not minimal",
            .v5,
            [0xC0, 0x80, 0x00],
            code: .malformedPacket
        ),
        Hostile("a remaining length of five bytes", .v5, [0x30, 0xFF, 0xFF, 0xFF, 0xFF, 0x01], code: .malformedPacket),
        Hostile("a packet larger than allowed", .v5, [0x30, 0x80, 0x80, 0x01], code: .packetTooLarge),
        Hostile("a CONNECT larger than allowed", nil, [0x10, 0xFF, 0xFF, 0xFF, 0x7F], code: .packetTooLarge),
        Hostile("PINGREQ with a body", .v5, [0xC0, 1, 0], code: .malformedPacket),
        Hostile("PINGRESP with a body", .v5, [0xD0, 1, 0], code: .malformedPacket),
        Hostile("PUBACK of one byte", .v5, [0x40, 1, 0], code: .malformedPacket),
        Hostile("PUBACK with more than it holds, 3.1.1", .v311, [0x40, 3, 0, 1, 0], code: .malformedPacket),
        Hostile("PUBACK with more than it holds", .v5, [0x40, 5, 0, 1, 0, 0, 0], code: .malformedPacket),
        Hostile("[MQTT-2.2.1-3] PUBACK for 0", .v5, [0x40, 2, 0, 0], code: .protocolError),
        Hostile(
            "[MQTT-3.4.2-1] PUBACK with a code of another packet",
            .v5,
            [0x40, 3, 0, 1, 0x8E],
            code: .protocolError
        ),
        Hostile("PUBACK with an unknown code", .v5, [0x40, 3, 0, 1, 0xFF], code: .protocolError),
        Hostile("DISCONNECT with a body, 3.1.1", .v311, [0xE0, 1, 0], code: .malformedPacket),
        Hostile("DISCONNECT with an unknown code", .v5, [0xE0, 1, 0x7F], code: .protocolError),
        Hostile("AUTH with a code of another packet", .v5, [0xF0, 1, 0x80], code: .protocolError),
    ]

    static let connects: [Hostile] = [
        Hostile(
            "[MQTT-3.1.2-1] another protocol name",
            nil,
            [0x10, 7, 0, 4, 0x48, 0x54, 0x54, 0x50, 5],
            code: .unsupportedProtocolVersion
        ),
        Hostile(
            "[MQTT-3.1.2-2] version 3",
            nil,
            [0x10, 9, 0, 6, 0x4D, 0x51, 0x49, 0x73, 0x64, 0x70, 3],
            code: .unsupportedProtocolVersion
        ),
        Hostile(
            "[MQTT-3.1.2-2] version 6",
            nil,
            [0x10, 7, 0, 4, 0x4D, 0x51, 0x54, 0x54, 6],
            code: .unsupportedProtocolVersion
        ),
        Hostile(
            "a name in lower case",
            nil,
            [0x10, 7, 0, 4, 0x6D, 0x71, 0x74, 0x74, 5],
            code: .unsupportedProtocolVersion
        ),
        Hostile("an empty CONNECT", nil, [0x10, 0], code: .malformedPacket),
        .connect5(
            "[MQTT-3.1.2-3] a reserved flag",
            0x03,
            properties: [],
            payload: [0, 1, 0x61],
            code: .malformedPacket
        ),
        .connect5(
            "[MQTT-3.1.2-11] will QoS without a will",
            0x08,
            properties: [],
            payload: [0, 1, 0x61],
            code: .malformedPacket
        ),
        .connect5(
            "[MQTT-3.1.2-13] will retain without a will",
            0x20,
            properties: [],
            payload: [0, 1, 0x61],
            code: .malformedPacket
        ),
        .connect5(
            "[MQTT-3.1.2-12] will QoS 3",
            0x1E,
            properties: [],
            payload: [0, 1, 0x61, 0, 0, 1, 0x61, 0, 0],
            code: .malformedPacket
        ),
        .connect5("no client identifier", 0x02, properties: [], payload: [], code: .malformedPacket),
        .connect5(
            "a user name that is announced and missing",
            0x82,
            properties: [],
            payload: [0, 1, 0x61],
            code: .malformedPacket
        ),
        .connect5(
            "a password that is there and not announced",
            0x02,
            properties: [],
            payload: [0, 1, 0x61, 0, 1, 0x61],
            code: .malformedPacket
        ),
        .connect5(
            "a will topic with a wildcard",
            0x06,
            properties: [],
            payload: [0, 1, 0x61, 0, 0, 1, 0x23, 0, 0],
            code: .topicNameInvalid
        ),
        .connect5(
            "an empty will topic",
            0x06,
            properties: [],
            payload: [0, 1, 0x61, 0, 0, 0, 0, 0],
            code: .protocolError
        ),
        .connect5(
            "[MQTT-1.5.4-2] U+0000 in the client identifier",
            0x02,
            properties: [],
            payload: [0, 2, 0x61, 0],
            code: .malformedPacket
        ),
        .connect5(
            "[MQTT-1.5.4-1] a surrogate",
            0x02,
            properties: [],
            payload: [0, 3, 0xED, 0xA0, 0x80],
            code: .malformedPacket
        ),
        .connect5(
            "[MQTT-1.5.4-1] an overlong encoding",
            0x02,
            properties: [],
            payload: [0, 2, 0xC0, 0x80],
            code: .malformedPacket
        ),
        .connect5(
            "[MQTT-1.5.4-1] beyond U+10FFFF",
            0x02,
            properties: [],
            payload: [0, 4, 0xF4, 0x90, 0x80, 0x80],
            code: .malformedPacket
        ),
        .connect5(
            "[MQTT-1.5.4-1] a lone continuation",
            0x02,
            properties: [],
            payload: [0, 1, 0x80],
            code: .malformedPacket
        ),
        .connect5("receive maximum 0", 0x02, properties: [0x21, 0, 0], payload: [0, 1, 0x61], code: .protocolError),
        .connect5(
            "maximum packet size 0",
            0x02,
            properties: [0x27, 0, 0, 0, 0],
            payload: [0, 1, 0x61],
            code: .protocolError
        ),
        .connect5(
            "request problem information 2",
            0x02,
            properties: [0x17, 2],
            payload: [0, 1, 0x61],
            code: .protocolError
        ),
        .connect5(
            "session expiry twice",
            0x02,
            properties: [0x11, 0, 0, 0, 1, 0x11, 0, 0, 0, 1],
            payload: [0, 1, 0x61],
            code: .protocolError
        ),
        .connect5(
            "a property of PUBLISH",
            0x02,
            properties: [0x23, 0, 1],
            payload: [0, 1, 0x61],
            code: .malformedPacket
        ),
        .connect5("an unknown property", 0x02, properties: [0x7E, 0], payload: [0, 1, 0x61], code: .malformedPacket),
        .connect5(
            "a property cut short",
            0x02,
            properties: [0x11, 0, 0],
            payload: [0, 1, 0x61],
            code: .malformedPacket
        ),
        .connect5(
            "a property that reaches into the payload",
            0x02,
            properties: [0x26, 0, 1, 0x61, 0, 9],
            payload: [0, 1, 0x61],
            code: .malformedPacket
        ),
        .connect5(
            "authentication data without a method",
            0x02,
            properties: [0x16, 0, 0],
            payload: [0, 1, 0x61],
            code: .protocolError
        ),
        .connect5(
            "a property of the will among those of CONNECT",
            0x02,
            properties: [0x18, 0, 0, 0, 1],
            payload: [0, 1, 0x61],
            code: .malformedPacket
        ),
        .connect3(
            "[MQTT-3.1.2-22] of 3.1.1: a password without a user name",
            0x42,
            [0, 1, 0x61, 0, 1, 0x61],
            code: .malformedPacket
        ),
        .connect3("more than the payload", 0x02, [0, 1, 0x61, 0], code: .malformedPacket),
    ]

    static let messages: [Hostile] = [
        Hostile("[MQTT-3.3.1-4] QoS 3", .v5, [0x36, 4, 0, 1, 0x61, 0], code: .malformedPacket),
        Hostile("[MQTT-3.3.1-2] a duplicate at QoS 0", .v5, [0x38, 4, 0, 1, 0x61, 0], code: .malformedPacket),
        Hostile("[MQTT-3.3.2-2] # in a topic name", .v5, [0x30, 4, 0, 1, 0x23, 0], code: .topicNameInvalid),
        Hostile("[MQTT-3.3.2-2] + in a topic name", .v311, [0x30, 3, 0, 1, 0x2B], code: .topicNameInvalid),
        Hostile("[MQTT-4.7.3-1] an empty topic name", .v5, [0x30, 3, 0, 0, 0], code: .protocolError),
        Hostile("[MQTT-4.7.3-2] U+0000 in a topic name", .v5, [0x30, 4, 0, 1, 0, 0], code: .malformedPacket),
        Hostile("[MQTT-2.2.1-3] packet identifier 0", .v5, [0x32, 6, 0, 1, 0x61, 0, 0, 0], code: .protocolError),
        Hostile("no packet identifier at QoS 1", .v5, [0x32, 3, 0, 1, 0x61], code: .malformedPacket),
        Hostile("[MQTT-3.3.2-8] topic alias 0", .v5, [0x30, 7, 0, 1, 0x61, 3, 0x23, 0, 0], code: .topicAliasInvalid),
        Hostile(
            "[MQTT-3.3.2-14] a wildcard in a response topic",
            .v5,
            [0x30, 8, 0, 1, 0x61, 4, 0x08, 0, 1, 0x23],
            code: .topicNameInvalid
        ),
        Hostile("payload format 2", .v5, [0x30, 6, 0, 1, 0x61, 2, 0x01, 2], code: .protocolError),
        Hostile("subscription identifier 0", .v5, [0x30, 6, 0, 1, 0x61, 2, 0x0B, 0], code: .protocolError),
        Hostile(
            "a subscription identifier that is not minimal",
            .v5,
            [0x30, 7, 0, 1, 0x61, 3, 0x0B, 0x81, 0],
            code: .malformedPacket
        ),
        Hostile("properties longer than the packet", .v5, [0x30, 4, 0, 1, 0x61, 9], code: .malformedPacket),
        Hostile("[MQTT-3.8.3-2] SUBSCRIBE without a filter", .v5, [0x82, 3, 0, 1, 0], code: .protocolError),
        Hostile("[MQTT-3.8.3-2] SUBSCRIBE without a filter, 3.1.1", .v311, [0x82, 2, 0, 1], code: .protocolError),
        Hostile("[MQTT-4.7.3-1] an empty filter", .v5, [0x82, 6, 0, 1, 0, 0, 0, 0], code: .malformedPacket),
        Hostile("[MQTT-3.8.3-5] reserved options", .v5, [0x82, 7, 0, 1, 0, 0, 1, 0x61, 0x41], code: .malformedPacket),
        Hostile("options of MQTT 5 in 3.1.1", .v311, [0x82, 6, 0, 1, 0, 1, 0x61, 0x05], code: .malformedPacket),
        Hostile("SUBSCRIBE at QoS 3", .v5, [0x82, 7, 0, 1, 0, 0, 1, 0x61, 0x03], code: .protocolError),
        Hostile("retain handling 3", .v5, [0x82, 7, 0, 1, 0, 0, 1, 0x61, 0x31], code: .protocolError),
        Hostile("a filter without options", .v5, [0x82, 6, 0, 1, 0, 0, 1, 0x61], code: .malformedPacket),
        Hostile(
            "[MQTT-3.8.3-4] No Local on a shared subscription",
            .v5,
            [0x82, 16, 0, 1, 0, 0, 10] + Array("$share/g/a".utf8) + [0x05],
            code: .protocolError
        ),
        Hostile(
            "two subscription identifiers in SUBSCRIBE",
            .v5,
            [0x82, 11, 0, 1, 4, 0x0B, 1, 0x0B, 1, 0, 1, 0x61, 0],
            code: .protocolError
        ),
        Hostile("[MQTT-2.2.1-3] SUBSCRIBE 0", .v5, [0x82, 7, 0, 0, 0, 0, 1, 0x61, 0x01], code: .protocolError),
        Hostile("[MQTT-3.10.3-2] UNSUBSCRIBE without a filter", .v5, [0xA2, 3, 0, 1, 0], code: .protocolError),
        Hostile("SUBACK with a code of another packet", .v5, [0x90, 4, 0, 1, 0, 0x8B], code: .protocolError),
        Hostile("SUBACK of 3.1.1 with a code of MQTT 5", .v311, [0x90, 3, 0, 1, 0x87], code: .malformedPacket),
        Hostile("SUBACK without a code", .v5, [0x90, 3, 0, 1, 0], code: .malformedPacket),
        Hostile("UNSUBACK of 3.1.1 with a code", .v311, [0xB0, 3, 0, 1, 0], code: .malformedPacket),
        Hostile("CONNACK with reserved flags", .v5, [0x20, 3, 2, 0, 0], code: .malformedPacket),
        Hostile("CONNACK of 3.1.1 with a reserved code", .v311, [0x20, 2, 0, 6], code: .malformedPacket),
        Hostile("CONNACK with maximum QoS 2", .v5, [0x20, 5, 0, 0, 2, 0x24, 2], code: .protocolError),
    ]

    @Test(arguments: framing + connects + messages)
    func `bytes that are not a packet are refused with their reason code`(hostile: Hostile) {
        #expect(throws: MQTTError(hostile.code, "")) { try decode(hostile.bytes, hostile.version) }
    }

    @Test(arguments: framing + connects + messages)
    func `they are refused as well when they arrive byte by byte`(hostile: Hostile) {
        var decoder =
            hostile.version.map { MQTTPacketDecoder(version: $0, maximumPacketSize: 8192) }
            ?? MQTTPacketDecoder(awaitingConnectUpTo: 8192)
        #expect(throws: MQTTError(hostile.code, "")) {
            for byte in hostile.bytes {
                decoder.append(ByteBuffer(bytes: [byte]))
                while (try decoder.next()) != nil {}
            }
        }
    }

    @Test func `[MQTT-3.1.4-6] nothing is read after an error`() throws {
        var decoder = MQTTPacketDecoder(version: .v5, maximumPacketSize: 100)
        decoder.append(ByteBuffer(bytes: [0xC0, 1, 0]))
        #expect(throws: MQTTError.self) { _ = try decoder.next() }
        decoder.append(ByteBuffer(bytes: [0xC0, 0, 0xC0, 0]))
        let packet1 = try decoder.next()
        #expect(packet1 == nil)
        #expect(decoder.pendingBytes == 0)
    }

    @Test func `a refusal uses the version nearest to the one that the peer asked for`() {
        func refusal(_ bytes: [UInt8]) -> MQTTVersion? {
            var decoder = MQTTPacketDecoder(awaitingConnectUpTo: 8192)
            decoder.append(ByteBuffer(bytes: bytes))
            #expect(throws: MQTTError.self) { _ = try decoder.next() }
            return decoder.refusalVersion
        }
        #expect(refusal([0x10, 7, 0, 4] + Array("MQTT".utf8) + [6]) == .v5)
        #expect(refusal([0x10, 7, 0, 4] + Array("MQTT".utf8) + [3]) == .v311)
        #expect(refusal([0x10, 9, 0, 6] + Array("MQIsdp".utf8) + [3]) == .v311)
        #expect(refusal([0x10, 7, 0, 4] + Array("HTTP".utf8) + [5]) == nil)
        #expect(refusal([0x10, 7, 0, 4] + Array("MQTT".utf8) + [5]) == .v5)
    }

    @Test func `every property is read in its places and refused in all others`() throws {
        let properties: [(MQTTPropertyIdentifier, MQTTProperty)] = zip(MQTTPropertyIdentifier.allCases, oneOfEach).map {
            ($0, $1)
        }
        #expect(properties.count == 27)
        for (identifier, property) in properties {
            for place in MQTTPropertyPlace.allCases {
                guard let packet = packet(with: property, in: place) else { continue }
                let bytes = Array(try PacketSamples.bytes(packet, .v5).readableBytesView)
                if identifier.isAllowed(in: place) {
                    #expect(try decode(bytes) == [packet], "\(identifier) in \(place)")
                } else {
                    #expect(throws: MQTTError(.malformedPacket, ""), "\(identifier) in \(place)") { try decode(bytes) }
                }
            }
        }
    }

    @Test func `every property appears once, except user properties and subscription identifiers of PUBLISH`() throws {
        for (identifier, property) in zip(MQTTPropertyIdentifier.allCases, oneOfEach) {
            for place in MQTTPropertyPlace.allCases where identifier.isAllowed(in: place) {
                guard let packet = packet(with: property, in: place, twice: true) else { continue }
                let bytes = Array(try PacketSamples.bytes(packet, .v5).readableBytesView)
                if identifier.isRepeatable(in: place) {
                    #expect(try decode(bytes) == [packet])
                } else {
                    #expect(throws: MQTTError(.protocolError, ""), "\(identifier) in \(place)") { try decode(bytes) }
                }
            }
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `valid packets with wrong bytes in them never trap`(version: MQTTVersion) throws {
        // A fixed sequence (xorshift), so that a failure can be run again.
        var state: UInt64 = 0x9E37_79B9_7F4A_7C15
        func random(_ bound: Int) -> Int {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return Int(state % UInt64(bound))
        }
        let samples = try PacketSamples.samples(version).map {
            Array(try PacketSamples.bytes($0, version).readableBytesView)
        }
        for _ in 0..<20_000 {
            var bytes = samples[random(samples.count)]
            for _ in 0...random(3) {
                switch random(3) {
                case 0: bytes[random(bytes.count)] = UInt8(random(256))
                case 1: bytes.insert(UInt8(random(256)), at: random(bytes.count + 1))
                default: if bytes.count > 1 { bytes.remove(at: random(bytes.count)) }
                }
            }
            var decoder =
                random(4) == 0
                ? MQTTPacketDecoder(awaitingConnectUpTo: 512)
                : MQTTPacketDecoder(version: version, maximumPacketSize: 512)
            let cut = random(bytes.count + 1)
            decoder.append(ByteBuffer(bytes: bytes[..<cut]))
            do {
                while (try decoder.next()) != nil {}
                decoder.append(ByteBuffer(bytes: bytes[cut...]))
                while decoder.nextAcknowledgement() != nil {}
                while (try decoder.next()) != nil {}
            } catch {
                #expect(error.code.isFailure)
            }
            #expect(decoder.pendingBytes <= 512)
        }
    }

    /// One property of each kind, in the order of their identifiers.
    private var oneOfEach: [MQTTProperty] {
        [
            .payloadFormatIndicator(1), .messageExpiryInterval(1), .contentType("a"), .responseTopic("a"),
            .correlationData([1]),
            .subscriptionIdentifier(1), .sessionExpiryInterval(1), .assignedClientIdentifier("a"), .serverKeepAlive(1),
            .authenticationMethod("a"), .authenticationData([1]), .requestProblemInformation(1), .willDelayInterval(1),
            .requestResponseInformation(1), .responseInformation("a"), .serverReference("a"), .reasonString("a"),
            .receiveMaximum(1), .topicAliasMaximum(1), .topicAlias(1), .maximumQoS(1), .retainAvailable(1),
            .userProperty(name: "a", value: "b"), .maximumPacketSize(1), .wildcardSubscriptionAvailable(1),
            .subscriptionIdentifierAvailable(1), .sharedSubscriptionAvailable(1),
        ]
    }

    private func packet(with property: MQTTProperty, in place: MQTTPropertyPlace, twice: Bool = false) -> MQTTPacket? {
        let properties = MQTTProperties(twice ? [property, property] : [property])
        switch place {
        case .connect:
            // Data are nothing without their method.
            var all = properties
            if case .authenticationData = property { all.append(.authenticationMethod("m")) }
            return .connect(
                MQTTConnect(version: .v5, clientIdentifier: "a", isClean: true, keepAlive: 1, properties: all)
            )
        case .will:
            let will = MQTTWill(topic: "a", payload: [], properties: properties)
            return .connect(MQTTConnect(version: .v5, clientIdentifier: "a", isClean: true, keepAlive: 1, will: will))
        case .connack: return .connack(MQTTConnack(properties: properties))
        case .publish: return .publish(MQTTPublish(topic: "a", properties: properties, payload: [1]))
        case .publishAnswer: return .puback(MQTTPublishAnswer(packetIdentifier: 1, properties: properties))
        case .subscribe:
            return .subscribe(
                MQTTSubscribe(
                    packetIdentifier: 1,
                    properties: properties,
                    subscriptions: [MQTTSubscription(filter: "a")]
                )
            )
        case .suback:
            return .suback(
                MQTTSubscriptionAnswer(packetIdentifier: 1, properties: properties, reasonCodes: [.grantedQoS1])
            )
        case .unsubscribe:
            return .unsubscribe(MQTTUnsubscribe(packetIdentifier: 1, properties: properties, filters: ["a"]))
        case .unsuback:
            return .unsuback(
                MQTTSubscriptionAnswer(packetIdentifier: 1, properties: properties, reasonCodes: [.success])
            )
        case .disconnect: return .disconnect(MQTTDisconnect(reasonCode: .unspecifiedError, properties: properties))
        case .auth: return .auth(MQTTAuth(reasonCode: .continueAuthentication, properties: properties))
        }
    }
}
