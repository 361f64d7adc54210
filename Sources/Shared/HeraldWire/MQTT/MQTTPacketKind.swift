/// The kinds of control packets, by the number in the upper half of the first byte (MQTT 5 §2.1.2).
package enum MQTTPacketKind: UInt8, Hashable, Sendable, CaseIterable {
    case connect = 1
    case connack = 2
    case publish = 3
    case puback = 4
    case pubrec = 5
    case pubrel = 6
    case pubcomp = 7
    case subscribe = 8
    case suback = 9
    case unsubscribe = 10
    case unsuback = 11
    case pingreq = 12
    case pingresp = 13
    case disconnect = 14
    /// MQTT 5 only; 15 is reserved in 3.1.1.
    case auth = 15

    /// The lower half of the first byte; nil for PUBLISH, where it carries DUP, QoS and RETAIN (MQTT 5 §2.1.3).
    package var fixedFlags: UInt8? {
        switch self {
        case .publish: nil
        case .pubrel, .subscribe, .unsubscribe: 0b0010
        default: 0
        }
    }

    /// The first byte of a packet whose flags are fixed.
    package var firstByte: UInt8 {
        rawValue << 4 | (fixedFlags ?? 0)
    }
}
