import CNghttp2
import NIOCore

/// Why an HTTP/2 session ends before its time.
///
/// The peer gets a GOAWAY if it can still understand one.
enum SessionEnd: Equatable {
    /// The first bytes are not the preface of HTTP/2 (RFC 9113 §3.4).
    case notHTTP2
    /// A header block is larger than ``HTTP2Limits/headerBlockBytes``.
    case headerBlockTooLarge
    /// The peer sends more frames that are not requests than ``HTTP2Limits/controlFrames`` allows.
    case controlFlood
    /// The peer resets more streams than ``HTTP2Limits/resetsReceived`` allows, or provokes more resets than
    /// ``HTTP2Limits/resetsSent``.
    case resetFlood
    /// The peer sends, but does not acknowledge SETTINGS (RFC 9113 §6.5.3).
    case settingsTimeout
    /// The peer breaks the protocol, or the library has no memory; the library's error code.
    case failed(Int32)

    /// The reason for the metric.
    var reason: CutOffReason {
        switch self {
        case .notHTTP2, .failed: .protocol
        case .headerBlockTooLarge: .headerBlock
        case .controlFlood: .controlFlood
        case .resetFlood: .resetFlood
        case .settingsTimeout: .settingsTimeout
        }
    }
}

/// Rate limits for everything that a peer sends or provokes beside requests.
struct FloodGuard {
    private let controlFrames: Int
    private let controlFramesPerRequest: Int
    private var control: TokenBucket
    private var resetsReceived: TokenBucket
    private var resetsSent: TokenBucket
    /// Cost of the header block that began last.
    private var blockCost = 0

    init(_ limits: HTTP2Limits, now: NIODeadline) {
        controlFrames = limits.controlFrames
        controlFramesPerRequest = limits.controlFramesPerRequest
        control = TokenBucket(capacity: limits.controlFrames, perSecond: limits.controlFramesPerSecond, now: now)
        resetsReceived = TokenBucket(
            capacity: limits.resetsReceived,
            perSecond: limits.resetsReceivedPerSecond,
            now: now
        )
        resetsSent = TokenBucket(capacity: limits.resetsSent, perSecond: limits.resetsSentPerSecond, now: now)
    }

    /// Charges a frame, of which only the header is known.
    /// - Returns: Why the session ends; nil if it goes on.
    mutating func received(_ frame: nghttp2_frame_hd, now: NIODeadline) -> SessionEnd? {
        var cost = 0
        switch UInt32(frame.type) {
        case NGHTTP2_DATA.rawValue:
            // An empty DATA frame is legitimate only as the end of a request.
            if frame.length == 0, frame.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) == 0 { cost = 1 }
        case NGHTTP2_HEADERS.rawValue:
            // The library decodes a block that belongs to no request without telling us, at a microsecond for each byte
            // that refers to the table. A block that begins a request gets its cost back.
            cost = 1 + frame.length / 64
            if frame.flags & UInt8(NGHTTP2_FLAG_END_HEADERS.rawValue) == 0 { cost += controlFrames / 4 }
            blockCost = cost
        case NGHTTP2_CONTINUATION.rawValue:
            break
        case NGHTTP2_RST_STREAM.rawValue:
            cost = 1
            guard resetsReceived.take(1, now: now) else { return .resetFlood }
        default:
            cost = 1
        }
        return cost == 0 || control.take(cost, now: now) ? nil : .controlFlood
    }

    /// The header block begins a request, which also pays for some control frames.
    mutating func beganRequest() {
        control.earn(blockCost + controlFramesPerRequest)
    }

    /// Charges a reset that the peer made us send.
    /// - Returns: false if it is one too many.
    mutating func sentReset(now: NIODeadline) -> Bool {
        resetsSent.take(1, now: now)
    }
}
