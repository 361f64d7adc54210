import NIOCore

/// Another protocol than a port speaks, told by the first bytes, and the plain answer to it.
///
/// A client that is at the wrong port, or without TLS, would otherwise see an alert of TLS or a closed connection.
enum OtherProtocol: Hashable {
    case http1(isHead: Bool)
    /// HTTP/2 without TLS.
    case http2
    /// MQTT without TLS.
    case mqtt(isVersion5: Bool)
    case unknown

    /// The longest method that is waited for.
    private static let methodBytes = 16
    /// The bytes up to MQTT's protocol level, of a short header.
    private static let mqttBytes = 9

    /// Tells the protocol of a connection that does not begin with a TLS record.
    /// - Returns: nil while more bytes are needed.
    init?(_ bytes: ByteBufferView) {
        guard let first = bytes.first else { return nil }
        if first == 0x10 {
            guard bytes.count >= Self.mqttBytes else { return nil }
            guard let name = bytes.prefix(12).indices.first(where: { bytes[$0...].starts(with: Array("MQTT".utf8)) }),
                let level = bytes.dropFirst(name - bytes.startIndex + 4).first
            else {
                self = .unknown
                return
            }
            self = .mqtt(isVersion5: level == 5)
            return
        }
        let method = bytes.prefix(Self.methodBytes).prefix { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) }
        guard !method.isEmpty, method.count < Self.methodBytes else {
            self = .unknown
            return
        }
        guard let next = bytes.dropFirst(method.count).first else { return nil }
        guard next == UInt8(ascii: " ") else {
            self = .unknown
            return
        }
        self = method.elementsEqual("PRI".utf8) ? .http2 : .http1(isHead: method.elementsEqual("HEAD".utf8))
    }

    /// Whether bytes are the beginning of a TLS record, or of the ClientHello of SSL 2, both of which TLS judges.
    static func isTLS(_ bytes: ByteBufferView) -> Bool {
        bytes.first.map { (20...23).contains($0) || $0 >= 0x80 } ?? true
    }

    /// The answer of a port in the peer's protocol, as far as that has words.
    func answer(_ words: String) -> ByteBuffer {
        // The shortest form of a length, in a packet of MQTT, ends at 127.
        let words = words.prefix(119)
        switch self {
        case .http1(let isHead):
            let text = words + "\n"
            let head = """
                HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: \(text.utf8.count)\r\n\
                connection: close\r\n\r\n
                """
            return ByteBuffer(string: isHead ? head : head + text)
        case .http2:
            // SETTINGS, then GOAWAY with INADEQUATE_SECURITY (RFC 9113 §7).
            var frames = ByteBuffer(bytes: [0, 0, 0, 4, 0, 0, 0, 0, 0])
            frames.writeBytes([
                0, 0, UInt8(clamping: 8 + words.utf8.count), 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0C,
            ])
            frames.writeSubstring(words)
            return frames
        case .mqtt(isVersion5: false):
            // CONNACK: not authorized (MQTT 3.1.1 §3.2.2.3).
            return ByteBuffer(bytes: [0x20, 2, 0, 5])
        case .mqtt(isVersion5: true):
            // CONNACK with 0x87, not authorized, and a reason string (MQTT 5 §3.2.2).
            let length = UInt8(clamping: words.utf8.count)
            var packet = ByteBuffer(bytes: [0x20, length + 6, 0, 0x87, length + 3, 0x1F, 0, length])
            packet.writeSubstring(words)
            return packet
        case .unknown:
            return ByteBuffer(string: words + "\r\n")
        }
    }
}

/// Says that a connection began without TLS, and was answered.
package struct PlainConnection: Sendable {}
