import NIOCore

@testable import HeraldWire

/// One packet of every kind with everything that it can hold, and its plainest form.
enum PacketSamples {
    static let v5: [MQTTPacket] = [
        .connect(
            MQTTConnect(
                version: .v5,
                clientIdentifier: "device-1",
                isClean: true,
                keepAlive: 60,
                will: MQTTWill(
                    topic: "status/device-1",
                    payload: [0, 1, 2],
                    qualityOfService: .atLeastOnce,
                    isRetained: true,
                    properties: [
                        .willDelayInterval(5), .payloadFormatIndicator(1), .messageExpiryInterval(9),
                        .contentType("text/plain"),
                        .responseTopic("answers"), .correlationData([7, 8]), .userProperty(name: "a", value: "b"),
                    ]
                ),
                userName: "somebody",
                password: [0xFF, 0x00],
                properties: [
                    .sessionExpiryInterval(3600), .receiveMaximum(10), .maximumPacketSize(4096), .topicAliasMaximum(3),
                    .requestResponseInformation(1), .requestProblemInformation(0), .userProperty(name: "k", value: ""),
                    .userProperty(name: "k", value: "\u{FEFF}ü😀"), .authenticationMethod("none"),
                    .authenticationData([1]),
                ]
            )
        ),
        .connect(MQTTConnect(version: .v5, clientIdentifier: "", isClean: false, keepAlive: 0)),
        .connack(
            MQTTConnack(
                isSessionPresent: true,
                properties: [
                    .sessionExpiryInterval(1), .receiveMaximum(2), .maximumQoS(1), .retainAvailable(0),
                    .maximumPacketSize(3),
                    .assignedClientIdentifier("x"), .topicAliasMaximum(0), .reasonString("r"),
                    .wildcardSubscriptionAvailable(0),
                    .subscriptionIdentifierAvailable(0), .sharedSubscriptionAvailable(0), .serverKeepAlive(30),
                    .responseInformation("i"), .serverReference("s"), .authenticationMethod("m"),
                    .authenticationData([]),
                ]
            )
        ),
        .connack(MQTTConnack(reasonCode: .clientIdentifierNotValid)),
        .publish(
            MQTTPublish(
                topic: "apps/com.example.chat",
                packetIdentifier: 0xFFFF,
                qualityOfService: .exactlyOnce,
                isDuplicate: true,
                isRetained: true,
                properties: [
                    .payloadFormatIndicator(0), .messageExpiryInterval(.max), .topicAlias(1), .responseTopic("r"),
                    .correlationData([]), .subscriptionIdentifier(1), .subscriptionIdentifier(268_435_455),
                    .contentType(""),
                ],
                payload: [1, 2, 3]
            )
        ),
        .publish(MQTTPublish(topic: "a", payload: [])),
        .publish(MQTTPublish(topic: "", properties: [.topicAlias(2)], payload: [])),
        .puback(MQTTPublishAnswer(packetIdentifier: 1)),
        .puback(MQTTPublishAnswer(packetIdentifier: 1, reasonCode: .quotaExceeded)),
        .puback(MQTTPublishAnswer(packetIdentifier: 1, properties: [.reasonString("why")])),
        .pubrec(MQTTPublishAnswer(packetIdentifier: 2, reasonCode: .noMatchingSubscribers)),
        .pubrel(MQTTPublishAnswer(packetIdentifier: 3, reasonCode: .packetIdentifierNotFound)),
        .pubcomp(MQTTPublishAnswer(packetIdentifier: 4, properties: [.userProperty(name: "", value: "")])),
        .subscribe(
            MQTTSubscribe(
                packetIdentifier: 5,
                properties: [.subscriptionIdentifier(128), .userProperty(name: "token", value: "00")],
                subscriptions: [
                    MQTTSubscription(
                        filter: "a/#",
                        maximumQoS: .exactlyOnce,
                        isNoLocal: true,
                        isRetainedAsPublished: true,
                        retainHandling: 2
                    ),
                    MQTTSubscription(filter: "$share/g/b", maximumQoS: .atMostOnce),
                ]
            )
        ),
        .suback(
            MQTTSubscriptionAnswer(
                packetIdentifier: 6,
                properties: [.reasonString("no")],
                reasonCodes: [.grantedQoS1, .notAuthorized]
            )
        ),
        .unsubscribe(MQTTUnsubscribe(packetIdentifier: 7, filters: ["a", "b"])),
        .unsuback(MQTTSubscriptionAnswer(packetIdentifier: 8, reasonCodes: [.success, .noSubscriptionExisted])),
        .pingreq,
        .pingresp,
        .disconnect(MQTTDisconnect()),
        .disconnect(MQTTDisconnect(reasonCode: .serverMoved, properties: [.serverReference("elsewhere")])),
        .disconnect(MQTTDisconnect(properties: [.sessionExpiryInterval(0)])),
        .auth(MQTTAuth(reasonCode: .success)),
        .auth(
            MQTTAuth(reasonCode: .reauthenticate, properties: [.authenticationMethod("m"), .authenticationData([9])])
        ),
    ]

    static let v3: [MQTTPacket] = [
        .connect(
            MQTTConnect(
                version: .v311,
                clientIdentifier: "device-1",
                isClean: false,
                keepAlive: .max,
                will: MQTTWill(topic: "w", payload: []),
                userName: "",
                password: []
            )
        ),
        .connack(MQTTConnack(isSessionPresent: true)),
        .connack(MQTTConnack(reasonCode: .notAuthorized)),
        .publish(MQTTPublish(topic: "a", packetIdentifier: 1, qualityOfService: .atLeastOnce, payload: [0])),
        .publish(MQTTPublish(topic: "a", payload: [])),
        .puback(MQTTPublishAnswer(packetIdentifier: 1)),
        .pubrec(MQTTPublishAnswer(packetIdentifier: 1)),
        .pubrel(MQTTPublishAnswer(packetIdentifier: 1)),
        .pubcomp(MQTTPublishAnswer(packetIdentifier: 1)),
        .subscribe(
            MQTTSubscribe(
                packetIdentifier: 1,
                subscriptions: [MQTTSubscription(filter: "+/a", maximumQoS: .exactlyOnce)]
            )
        ),
        .suback(
            MQTTSubscriptionAnswer(packetIdentifier: 1, reasonCodes: [.grantedQoS0, .grantedQoS2, .unspecifiedError])
        ),
        .unsubscribe(MQTTUnsubscribe(packetIdentifier: 1, filters: ["#"])),
        .unsuback(MQTTSubscriptionAnswer(packetIdentifier: 1, reasonCodes: [])),
        .pingreq,
        .pingresp,
        .disconnect(MQTTDisconnect()),
    ]

    static func samples(_ version: MQTTVersion) -> [MQTTPacket] {
        version == .v5 ? v5 : v3
    }

    static func bytes(_ packet: MQTTPacket, _ version: MQTTVersion) throws -> ByteBuffer {
        var buffer = ByteBuffer()
        try MQTTPacketEncoder.encode(packet, version: version, into: &buffer)
        return buffer
    }
}

/// Decodes all packets of `bytes`, given to the decoder in one piece.
func decode(_ bytes: [UInt8], _ version: MQTTVersion? = .v5, maximum: Int = 8192) throws(MQTTError) -> [MQTTPacket] {
    var decoder =
        version.map { MQTTPacketDecoder(version: $0, maximumPacketSize: maximum) }
        ?? MQTTPacketDecoder(awaitingConnectUpTo: maximum)
    decoder.append(ByteBuffer(bytes: bytes))
    var packets: [MQTTPacket] = []
    while let packet = try decoder.next() { packets.append(packet) }
    return packets
}
