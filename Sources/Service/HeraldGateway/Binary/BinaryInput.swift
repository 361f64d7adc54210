import HeraldMailbox
import HeraldWire
import NIOCore

/// The bytes that a client of the binary interface has sent.
struct BinaryInput {
    private let decoder: BinaryFrameDecoder
    private var bytes = ByteBuffer()
    let began: NIODeadline
    var lastRead: NIODeadline
    /// When the incomplete notification began; nil if there is none.
    private(set) var partialSince: NIODeadline?
    /// Bytes that came after the output was closed.
    var drainedBytes = 0
    /// Whether the client has closed its output.
    var isOver = false
    /// Whether the channel waits to read until there is room.
    var isReadHeld = false

    init(_ limits: BinaryConfiguration, now: NIODeadline) {
        decoder = BinaryFrameDecoder(payloadBytes: limits.payloadBytes, frameBytes: limits.frameBytes)
        began = now
        lastRead = now
    }

    var isEmpty: Bool { bytes.readableBytes == 0 }

    mutating func append(_ more: inout ByteBuffer) {
        if isEmpty { bytes = more } else { bytes.writeBuffer(&more) }
    }

    /// Takes the next notification or fault; nil if more bytes are needed.
    mutating func next(at now: NIODeadline) -> BinaryFrame? {
        let frame = decoder.next(&bytes)
        if frame != nil || isEmpty {
            partialSince = nil
        } else if partialSince == nil {
            partialSince = now
        }
        return frame
    }

    /// Moves the rest of a burst to the front; the memory of a large burst is released.
    mutating func trim() {
        if isEmpty { drop() } else { bytes.discardReadBytes() }
    }

    mutating func drop() {
        bytes = ByteBuffer()
        partialSince = nil
    }
}

/// Knowledge of other nodes that a connection has waited for, or waits for.
struct BinaryCatchUps {
    /// Notifications that wait until this node has learned what other nodes know, by number, and what it has learned for them.
    var waiting: [UInt64: (request: BinaryNotification, confirmed: [SharedPart])] = [:]
    /// Whether this node may not know of certificates that other nodes have revoked.
    var isTrustBehind = false
}
