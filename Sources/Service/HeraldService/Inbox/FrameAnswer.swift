import HeraldModel
import HeraldTrust
import HeraldWire
import NIOCore

/// The notifications in bytes of the binary interface, as JSON.
struct FrameAnswer: Codable, Sendable {
    /// The most notifications of one answer.
    static let maximumItems = 100

    struct Item: Codable, Sendable {
        /// 0, 1 or 2; nil for a fault.
        var command: UInt8?
        var identifier: UInt32?
        /// Seconds since 1970, 0 for one attempt.
        var expiration: UInt32?
        var priority: UInt8?
        /// The first digits of the token.
        var token: String?
        var payload: String?
        /// The status of the error response; 0 if the frame is well formed.
        var status: UInt8 = 0
        /// The fault in words.
        var fault: String?
    }

    let bytes: Int
    let items: [Item]
    /// The bytes after the last notification, of one that is incomplete or after a fault, which ends the connection.
    let rest: Int

    init(_ bytes: [UInt8], payloadBytes: Int, frameBytes: Int) {
        let decoder = BinaryFrameDecoder(payloadBytes: payloadBytes, frameBytes: frameBytes)
        var buffer = ByteBuffer(bytes: bytes)
        var items: [Item] = []
        reading: while items.count < Self.maximumItems, let frame = decoder.next(&buffer) {
            switch frame {
            case .notification(let notification): items.append(Item(notification))
            case .fault(let fault):
                items.append(Item(fault, payloadBytes: payloadBytes))
                break reading
            }
        }
        self.bytes = bytes.count
        self.items = items
        rest = buffer.readableBytes
    }
}

extension FrameAnswer.Item {
    init(_ notification: BinaryNotification) {
        command = notification.form.rawValue
        identifier = notification.identifier
        expiration = notification.expiration
        priority = notification.priority?.rawValue
        token = String(notification.token.hex.prefix(8)) + "…"
        payload = String(decoding: notification.payload, as: UTF8.self)
    }

    init(_ found: BinaryFault, payloadBytes: Int) {
        identifier = found.identifier
        status = found.status.rawValue
        fault =
            switch found.status {
            case .missingDeviceToken: "the token is missing"
            case .missingPayload: "the payload is missing"
            case .invalidTokenSize: "the token has not 32 bytes"
            case .invalidPayloadSize: "the payload has more than \(payloadBytes) bytes"
            default: "not a frame of command 0, 1 or 2, or an item is doubled or has a wrong length"
            }
    }
}
