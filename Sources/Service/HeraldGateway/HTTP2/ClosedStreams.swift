import CNghttp2
import NIOCore

/// Decides whether a frame on a closed stream breaks the protocol, or may have been in flight (RFC 9113 §5.1).
///
/// A client that has ended or reset a stream sends no DATA or HEADERS on it any more. Only after a reset by Herald do such
/// frames arrive legitimately. So this type remembers the streams that Herald has reset, and no others.
struct ClosedStreams {
    /// Maximum remembered resets.
    private static let capacity = 256

    /// The last stream that the client has opened.
    private var last: Int32 = -1
    /// The streams that the client skipped most recently.
    private var skipped: ClosedRange<Int32>?
    /// Streams that Herald has reset; once it is full, the oldest is replaced.
    private var resets: [Int32] = []
    private var oldest = 0
    /// The last of the forgotten resets.
    ///
    /// All closed streams up to it count as reset.
    private var lastForgotten: Int32 = 0

    /// Whether a GOAWAY is submitted, after which the library opens no streams and ignores their frames.
    var isGoingAway = false
    /// The second GOAWAY of a graceful end: its debug data, and when it is due; nil without one.
    var secondGoAway: (json: [UInt8], due: NIODeadline)?

    /// Registers a HEADERS frame.
    /// - Returns: Whether it opens a stream.
    mutating func opens(_ streamID: Int32) -> Bool {
        guard streamID > last else { return false }
        // Without overflow for the highest identifier, also as the first.
        if last < streamID - 2 { skipped = last + 1...streamID - 1 }
        last = streamID
        return true
    }

    /// Registers a reset that was sent.
    mutating func sentReset(_ streamID: Int32) {
        guard resets.count == Self.capacity else { return resets.append(streamID) }
        lastForgotten = max(lastForgotten, resets[oldest])
        resets[oldest] = streamID
        oldest = (oldest + 1) % Self.capacity
    }

    /// The error of DATA or HEADERS on a stream that is not open; nil if the frame is ignored, or if the library refuses it.
    func error(on streamID: Int32) -> nghttp2_error_code? {
        guard !streamID.isMultiple(of: 2), streamID <= last, streamID > lastForgotten, !resets.contains(streamID)
        else { return nil }
        // A stream that the client has skipped was never open (RFC 9113 §5.1.1).
        return skipped?.contains(streamID) == true ? NGHTTP2_PROTOCOL_ERROR : NGHTTP2_STREAM_CLOSED
    }
}
