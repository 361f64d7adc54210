import NIOCore

/// How many streams a client may have open: what it was told, and what it has confirmed that it knows.
///
/// libnghttp2 holds a limit against the client from the moment that it is submitted. A client that opens streams before
/// it has read our SETTINGS has done nothing wrong (RFC 9113 §6.5.3), and some cannot cope with a refused stream. So the
/// library is given a limit that is never reached, the frame on the wire is given the real one, and the real one holds
/// once the client has acknowledged it.
struct StreamLimit {
    /// What the service bears, told or not.
    let ceiling: Int
    /// Streams that are open.
    var open = 0
    /// What the client was told last.
    private(set) var announced: Int
    /// What it holds itself to: the largest of what it has acknowledged and what it may have read since.
    private var effective: Int
    /// Told and not acknowledged, oldest first; those not yet on the wire are the last `unsent`.
    private var told: [Int] = []
    private var unsent = 0

    init(ceiling: Int) {
        self.ceiling = ceiling
        announced = ceiling
        effective = ceiling
    }

    /// What the library is told.
    var sessionCeiling: UInt32 { UInt32(clamping: ceiling) * 2 + 1 }

    /// Whether another stream may open.
    func admits() -> Bool {
        open < effective
    }

    /// A SETTINGS frame with a new limit was given to the library.
    mutating func announce(_ count: Int) {
        announced = min(count, ceiling)
        told.append(announced)
        unsent += 1
        effective = max(effective, announced)
    }

    /// The client has acknowledged the oldest SETTINGS frame that it had not.
    ///
    /// An acknowledgement of what was never sent means nothing.
    mutating func acknowledged() {
        guard told.count > unsent else { return }
        effective = told.removeFirst()
        for later in told { effective = max(effective, later) }
    }

    /// Writes the real limit over the library's, if the frame is one of SETTINGS.
    ///
    /// A frame is nine bytes of header, the type in the fourth and the flags in the fifth, then six bytes for each
    /// setting: two of identifier and four of value (RFC 9113 §4.1, §6.5.1).
    mutating func advertise(in buffer: inout ByteBuffer, frameAt start: Int) {
        let isSettings = buffer.getInteger(at: start + 3, as: UInt8.self) == 4
        guard isSettings, buffer.getInteger(at: start + 4, as: UInt8.self) == 0, unsent > 0 else { return }
        let value = told[told.count - unsent]
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
