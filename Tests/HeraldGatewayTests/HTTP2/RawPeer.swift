import CNghttp2
import NIOCore

@testable import HeraldGateway

/// One frame, as it is on the wire.
struct RawFrame {
    var type: UInt8
    var flags: UInt8
    var streamID: UInt32
    var payload: [UInt8]

    static let data: UInt8 = 0
    static let headers: UInt8 = 1
    static let priority: UInt8 = 2
    static let reset: UInt8 = 3
    static let settings: UInt8 = 4
    static let ping: UInt8 = 6
    static let goAway: UInt8 = 7
    static let windowUpdate: UInt8 = 8
    static let continuation: UInt8 = 9

    init(_ type: UInt8, flags: UInt8 = 0, stream: UInt32 = 0, _ payload: [UInt8] = []) {
        self.type = type
        self.flags = flags
        streamID = stream
        self.payload = payload
    }

    var bytes: [UInt8] {
        let count = payload.count
        return [UInt8(count >> 16 & 0xFF), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF), type, flags]
            + Self.big(streamID) + payload
    }

    var isEndStream: Bool { flags & 1 != 0 }
    var isAcknowledgement: Bool { flags & 1 != 0 }

    /// The error code of RST_STREAM.
    var errorCode: UInt32? { type == Self.reset ? Self.number(payload[...]) : nil }

    static func big(_ value: UInt32) -> [UInt8] {
        [UInt8(value >> 24), UInt8(value >> 16 & 0xFF), UInt8(value >> 8 & 0xFF), UInt8(value & 0xFF)]
    }

    static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        bytes.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    }
}

/// An HTTP/2 client made of bare frames: it does what it is told, right or wrong, and takes apart what it gets.
final class RawPeer {
    static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    private var inflater: OpaquePointer?
    private var pending: [UInt8] = []

    init() {
        nghttp2_hd_inflate_new(&inflater)
    }

    deinit {
        nghttp2_hd_inflate_del(inflater)
    }

    /// The usual fields of a push, with some changed, added, or (nil) left out.
    static func fields(
        token: String = String(repeating: "ab", count: 32),
        _ changes: [(String, String?)] = []
    ) -> [(String, String)] {
        var fields: [(String, String)] = [
            (":method", "POST"), (":scheme", "https"), (":path", "/3/device/" + token),
            (":authority", "api.push.apple.com"), ("apns-topic", "com.example.app"), ("apns-push-type", "alert"),
        ]
        for (name, value) in changes {
            if let index = fields.firstIndex(where: { $0.0 == name }) {
                if let value { fields[index].1 = value } else { fields.remove(at: index) }
            } else if let value {
                fields.append((name, value))
            }
        }
        return fields
    }

    /// A header block of literals without indexing and without Huffman's code (RFC 7541 §6.2.2).
    static func block(_ fields: [(String, String)]) -> [UInt8] {
        fields.flatMap { name, value in [0] + literal(Array(name.utf8)) + literal(Array(value.utf8)) }
    }

    static func literal(_ bytes: [UInt8]) -> [UInt8] {
        integer(bytes.count, prefix: 7) + bytes
    }

    static func integer(_ value: Int, prefix: Int, mark: UInt8 = 0) -> [UInt8] {
        let full = 1 << prefix - 1
        guard value >= full else { return [mark | UInt8(value)] }
        var rest = value - full
        var bytes = [mark | UInt8(full)]
        while rest >= 128 {
            bytes.append(UInt8(rest % 128) | 0x80)
            rest /= 128
        }
        return bytes + [UInt8(rest)]
    }

    /// The preface and empty SETTINGS.
    static var opening: [UInt8] { preface + RawFrame(RawFrame.settings).bytes }
    static var settingsAcknowledgement: [UInt8] { RawFrame(RawFrame.settings, flags: 1).bytes }

    /// HEADERS and, if there is a body, one DATA frame.
    static func request(
        _ stream: UInt32,
        _ fields: [(String, String)] = RawPeer.fields(),
        body: [UInt8] = Array(#"{"aps":{"alert":"hi"}}"#.utf8),
        ends: Bool = true
    ) -> [UInt8] {
        let end: UInt8 = ends ? 1 : 0
        let head = RawFrame(RawFrame.headers, flags: 4 | (body.isEmpty ? end : 0), stream: stream, block(fields)).bytes
        guard !body.isEmpty else { return head }
        var frames: [UInt8] = head
        var offset = 0
        while offset < body.count {
            let part = body[offset..<min(body.count, offset + 16_384)]
            offset = part.endIndex
            frames += RawFrame(RawFrame.data, flags: offset == body.count ? end : 0, stream: stream, Array(part)).bytes
        }
        return frames
    }

    /// The frames in what came; what is left over waits for the next call.
    func frames(_ bytes: some Sequence<UInt8>) -> [RawFrame] {
        pending += bytes
        var frames: [RawFrame] = []
        while pending.count >= 9 {
            let count = Int(pending[0]) << 16 | Int(pending[1]) << 8 | Int(pending[2])
            guard pending.count >= 9 + count else { break }
            let stream = RawFrame.number(pending[5..<9]) & 0x7FFF_FFFF
            frames.append(RawFrame(pending[3], flags: pending[4], stream: stream, Array(pending[9..<9 + count])))
            pending.removeFirst(9 + count)
        }
        return frames
    }

    /// The fields of a header block, which must be decoded in the order in which they came.
    func decode(_ block: [UInt8]) -> [String: String] {
        var fields: [String: String] = [:]
        var rest = block[...]
        while true {
            var field = nghttp2_nv()
            var flags: Int32 = 0
            let used = Array(rest).withUnsafeBufferPointer {
                nghttp2_hd_inflate_hd2(inflater, &field, &flags, $0.baseAddress, $0.count, 1)
            }
            guard used >= 0 else { return [:] }
            rest = rest.dropFirst(used)
            if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
                let name = String(decoding: UnsafeBufferPointer(start: field.name, count: field.namelen), as: UTF8.self)
                fields[name] = String(
                    decoding: UnsafeBufferPointer(start: field.value, count: field.valuelen),
                    as: UTF8.self
                )
            }
            if flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 {
                nghttp2_hd_inflate_end_headers(inflater)
                return fields
            }
        }
    }

    /// The answers in what came, by stream.
    func answers(_ frames: [RawFrame]) -> [UInt32: Answer] {
        var answers: [UInt32: Answer] = [:]
        for frame in frames where frame.type == RawFrame.headers {
            answers[frame.streamID] = Answer(
                fields: decode(frame.payload),
                body: "",
                frames: 1,
                isEnded: frame.isEndStream
            )
        }
        for frame in frames where frame.type == RawFrame.data {
            answers[frame.streamID]?.body += String(decoding: frame.payload, as: UTF8.self)
            answers[frame.streamID]?.frames += 1
            answers[frame.streamID]?.isEnded = frame.isEndStream
        }
        return answers
    }
}

/// An answer as a client sees it.
struct Answer: Equatable {
    var fields: [String: String]
    var body: String
    var frames: Int
    var isEnded: Bool

    var status: String? { fields[":status"] }
}
