import NIOCore

/// The number of streams that a client may open: announced, and enforced once the client has acknowledged it.
///
/// libnghttp2 enforces a limit as soon as it is submitted. But a client may open streams before it reads our SETTINGS
/// (RFC 9113 §6.5.3), and some clients cannot handle a refused stream. So the library gets a limit that is never reached,
/// the frame on the wire gets the real one, and this type enforces it.
struct StreamLimit {
    /// The maximum, whatever is announced.
    let ceiling: Int
    /// Open streams.
    var open = 0
    /// The last announced number.
    private(set) var announced: Int
    /// The enforced number: the largest of the acknowledged and all later announced ones.
    private var effective: Int
    /// Announced and not acknowledged, oldest first; the last `unsent` are not on the wire yet.
    private var pending: [Int] = []
    private var unsent = 0
    /// Whether the client's first SETTINGS arrived.
    var hasClientSettings = false
    /// When the client sent something after SETTINGS that it has not acknowledged; nil if it has.
    private var ignoredSince: NIODeadline?

    init(ceiling: Int) {
        self.ceiling = ceiling
        announced = ceiling
        effective = ceiling
    }

    /// The limit for the library, which is never reached.
    var sessionCeiling: UInt32 { UInt32(clamping: ceiling) * 2 + 1 }

    /// Whether another stream may open.
    func admits() -> Bool {
        open < effective
    }

    /// A SETTINGS frame with a new number was submitted to the library.
    mutating func announce(_ count: Int) {
        announced = min(count, ceiling)
        pending.append(announced)
        unsent += 1
        effective = max(effective, announced)
    }

    /// The client sent something; what it sends before its own SETTINGS does not count.
    ///
    /// A client that sends nothing need not read either, so its time begins with what it sends.
    mutating func received(at now: NIODeadline) {
        if hasClientSettings, ignoredSince == nil, pending.count > unsent { ignoredSince = now }
    }

    /// Whether a client that sends has left SETTINGS unacknowledged for a time.
    func isOverdue(_ timeout: TimeAmount, now: NIODeadline) -> Bool {
        ignoredSince.map { $0 + timeout <= now } ?? false
    }

    /// The client has acknowledged the oldest pending SETTINGS frame; other acknowledgements are ignored.
    mutating func acknowledged() {
        guard pending.count > unsent else { return }
        effective = pending.removeFirst()
        ignoredSince = nil
        for later in pending { effective = max(effective, later) }
    }

    /// Replaces the library's limit by the real one in a SETTINGS frame.
    ///
    /// A frame has nine bytes of header, with type at 3 and flags at 4, then six bytes per setting: two of identifier and
    /// four of value (RFC 9113 §4.1, §6.5.1).
    mutating func advertise(in buffer: inout ByteBuffer, frameAt start: Int) {
        let isSettings = buffer.getInteger(at: start + 3, as: UInt8.self) == 4
        guard isSettings, buffer.getInteger(at: start + 4, as: UInt8.self) == 0, unsent > 0 else { return }
        let value = pending[pending.count - unsent]
        unsent -= 1
        var entry = start + 9
        while entry + 6 <= buffer.writerIndex {
            if buffer.getInteger(at: entry, as: UInt16.self) == 3 {
                buffer.setInteger(UInt32(clamping: value), at: entry + 2)
            }
            entry += 6
        }
    }
}
