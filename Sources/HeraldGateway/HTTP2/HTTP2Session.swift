import CNghttp2
import NIOCore

/// Why a session can go on no longer.
///
/// The peer gets a GOAWAY where it still can.
enum SessionEnd: Equatable {
    /// The first bytes are not the preface of HTTP/2 (RFC 9113 §3.4).
    case notHTTP2
    /// A header block is larger than ``HTTP2Limits/headerBlockBytes``.
    case headerBlockTooLarge
    /// More frames that are not requests than ``HTTP2Limits/controlFrames`` allows.
    case controlFlood
    /// The peer resets more streams than ``HTTP2Limits/resetsReceived`` allows, or makes us reset more than
    /// ``HTTP2Limits/resetsSent``.
    case resetFlood
    /// The peer sends what it may not, or the library has no memory; its own error code.
    case failed(Int32)

    /// The end as a metric's label has it.
    var metricReason: String {
        switch self {
        case .notHTTP2, .failed: "protocol"
        case .headerBlockTooLarge: "header_block"
        case .controlFlood: "control_flood"
        case .resetFlood: "reset_flood"
        }
    }
}

/// The server's end of one HTTP/2 connection: bytes in, requests out; answers in, bytes out.
///
/// libnghttp2 does the protocol; nothing of it shows outside this type, so that it can be exchanged.
/// 1. Collects each request in a ``RequestSlot`` and gives it out when it is complete (``nextRequest()``).
/// 2. Turns answers into frames, when asked for bytes (``drain(into:upTo:)``), never on its own.
/// 3. Holds the limits that the library does not: header bytes, control frames, resets that the peer provokes, bodies,
///    time.
/// 4. Says how many streams are welcome, and refuses more once the client knows.
///
/// It stays on one event loop, knows no clock (the time is passed in) and does no I/O.
///
/// What its callbacks touch for every header field goes without the run-time's check for overlapping accesses, which was
/// 3 % of accepting a request: nothing here runs inside a change of these properties but that change.
final class HTTP2Session {
    let limits: HTTP2Limits
    private var library: OpaquePointer?
    private let fields: UnsafeMutablePointer<nghttp2_nv>
    private let bodyTimeout: TimeAmount
    private let replyTimeout: TimeAmount
    let headerBlockTimeout: TimeAmount
    @exclusivity(unchecked) var table: RequestTable
    @exclusivity(unchecked) var bodies: BodyAccount
    @exclusivity(unchecked) private var complete: [Int] = []
    @exclusivity(unchecked) private var completeRead = 0

    // What the callbacks keep.
    @exclusivity(unchecked) var now: NIODeadline
    var end: SessionEnd?
    @exclusivity(unchecked) var control: TokenBucket
    var resets: TokenBucket
    var resetsReceived: TokenBucket
    @exclusivity(unchecked) var streams: StreamLimit
    /// The slot whose header block is being read; nil between blocks and in blocks that are ignored.
    @exclusivity(unchecked) var block: RequestSlot?
    @exclusivity(unchecked) var blockBytes = 0
    var blockDeadline: NIODeadline?
    @exclusivity(unchecked) var blockCharge = 0
    @exclusivity(unchecked) var unconsumedBytes = 0
    var answersBeforeEnd = 0
    /// Requests that a drill leaves without an answer.
    var unansweredCount = 0
    /// Whether the client's first SETTINGS have come, which end the preface (RFC 9113 §3.4).
    var hasClientSettings = false

    /// - Parameters:
    ///   - limits: What a peer may do.
    ///   - streams: How many streams to advertise at first.
    ///   - bodies: Where unfinished bodies are counted, with those of all connections.
    ///   - now: The present.
    /// - Throws: ``GatewayError`` if there is no memory for it.
    init(limits: HTTP2Limits, streams: Int, bodies: BodyLoad, now: NIODeadline) throws {
        self.limits = limits
        self.now = now
        bodyTimeout = TimeAmount(limits.bodyTimeout)
        replyTimeout = TimeAmount(limits.replyTimeout)
        headerBlockTimeout = TimeAmount(limits.headerBlockTimeout)
        table = RequestTable(limit: limits.requestsInHand)
        self.bodies = BodyAccount(load: bodies, free: limits.bodyBytes)
        control = TokenBucket(capacity: limits.controlFrames, perSecond: limits.controlFramesPerSecond, now: now)
        resets = TokenBucket(capacity: limits.resetsSent, perSecond: limits.resetsSentPerSecond, now: now)
        resetsReceived = TokenBucket(
            capacity: limits.resetsReceived,
            perSecond: limits.resetsReceivedPerSecond,
            now: now
        )
        self.streams = StreamLimit(ceiling: limits.concurrentStreams)
        fields = .allocate(capacity: Self.fieldCapacity)
        fields.initialize(repeating: nghttp2_nv(), count: Self.fieldCapacity)
        library = try makeLibrarySession()
        try announceFirst(streams)
    }

    deinit {
        bodies.clear()
        nghttp2_session_del(library)
        fields.deallocate()
    }

    // Bytes in, requests out.

    /// Takes what came from the peer.
    ///
    /// Requests that are complete wait for ``nextRequest()``.
    /// - Returns: Why the session is over; nil if it goes on.
    func receive(_ bytes: UnsafeRawBufferPointer, now: NIODeadline) -> SessionEnd? {
        self.now = now
        guard end == nil else { return end }
        guard let base = bytes.baseAddress, !bytes.isEmpty else { return nil }
        let result = nghttp2_session_mem_recv(library, base.assumingMemoryBound(to: UInt8.self), bytes.count)
        if result < 0 { note(failure: Int32(truncatingIfNeeded: result)) }
        if !bodies.settle() { dropBodies() }
        return end
    }

    /// The next request that is complete, in the order in which they were.
    func nextRequest() -> RequestSlot? {
        while completeRead < complete.count {
            let slot = table.slots[complete[completeRead]]
            completeRead += 1
            if slot.phase == .complete { return slot }
            table.giveBack(slot)
        }
        complete.removeAll(keepingCapacity: true)
        completeRead = 0
        return nil
    }

    /// The request that a receipt is about, if anybody still has it in hand.
    func request(_ number: UInt64) -> RequestSlot? {
        table.request(number)
    }

    /// The post office has the request; its stream may end before the receipt comes.
    func keepInHand(_ slot: RequestSlot) {
        slot.phase = .inHand
    }

    // Answers in, bytes out.

    /// Answers a request.
    ///
    /// If its stream is gone, only its slot is freed.
    func reply(to slot: RequestSlot, _ reply: Reply) {
        guard slot.isStreamOpen else { return table.giveBack(slot) }
        slot.phase = .answered
        slot.deadline = now + replyTimeout
        if !slot.isEnded { answersBeforeEnd += 1 }
        slot.body = []
        slot.replyBody = reply.body
        if submit(slot, reply) != 0 {
            // No memory: the client sees a reset instead of an answer.
            nghttp2_submit_rst_stream(library, 0, slot.streamID, NGHTTP2_INTERNAL_ERROR.rawValue)
        }
    }

    /// Gives back to the peer the window of what came since the last call; once in each burst.
    func consume() {
        guard unconsumedBytes > 0 else { return }
        nghttp2_session_consume_connection(library, unconsumedBytes)
        unconsumedBytes = 0
    }

    /// Appends frames that wait to be sent, until there are none or `limit` bytes lie in the buffer.
    /// - Returns: Whether there may be more.
    func drain(into buffer: inout ByteBuffer, upTo limit: Int) -> Bool {
        while buffer.readableBytes < limit {
            var frame: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(library, &frame)
            guard count > 0, let frame else {
                if count < 0 { note(failure: Int32(truncatingIfNeeded: count)) }
                return false
            }
            let start = buffer.writerIndex
            buffer.writeBytes(UnsafeRawBufferPointer(start: frame, count: count))
            streams.advertise(in: &buffer, frameAt: start)
        }
        return true
    }

    /// Whether the protocol is over: a GOAWAY is out and nothing is left to read or send.
    var isOver: Bool {
        nghttp2_session_want_read(library) == 0 && nghttp2_session_want_write(library) == 0
    }

    // What is said to the peer about the connection.

    /// Says that more streams, or fewer, are welcome.
    func announce(streams count: Int) {
        guard count != streams.announced else { return }
        var entry = nghttp2_settings_entry(
            settings_id: Int32(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue),
            value: streams.sessionCeiling
        )
        guard nghttp2_submit_settings(library, 0, &entry, 1) == 0 else { return }
        streams.announce(count)
    }

    /// Says that no further request will be answered, and why: APNs puts the reason as JSON into the GOAWAY frame.
    /// - Parameters:
    ///   - json: The debug data.
    ///   - code: The error code; `NO_ERROR` for every end that is nobody's fault.
    ///   - disowning: Whether the requests that came are declared untouched.
    ///   - last: The last stream that is looked at, if requests behind it have come already.
    func goAway(_ json: [UInt8], code: GoAwayCode = .noError, disowning: Bool = false, upTo last: Int32? = nil) {
        let last = last ?? (disowning ? 0 : nghttp2_session_get_last_proc_stream_id(library))
        nghttp2_submit_goaway(library, 0, last, code.rawValue, json, json.count)
    }

    /// Writes a last GOAWAY by hand, past the library, whose state may be anything after a failure.
    ///
    /// The peer is to send less (RFC 9113 §7, ENHANCE_YOUR_CALM).
    func writeLastFrame(into buffer: inout ByteBuffer) {
        let last = nghttp2_session_get_last_proc_stream_id(library)
        buffer.writeInteger(UInt32(8) << 8 | UInt32(NGHTTP2_GOAWAY.rawValue))
        buffer.writeInteger(UInt8(0))
        buffer.writeInteger(UInt32(0))
        buffer.writeInteger(last)
        buffer.writeInteger(GoAwayCode.enhanceYourCalm.rawValue)
    }

    // What happens with time.

    /// How many requests are in hand and will be answered.
    var requestCount: Int { table.count - unansweredCount }

    /// Resets the streams whose time is over.
    /// - Returns: false if the header block that has begun should have ended by now.
    func sweep(now: NIODeadline) -> Bool {
        self.now = now
        for slot in table.slots {
            guard let deadline = slot.deadline, deadline <= now else { continue }
            slot.deadline = nil
            guard slot.isStreamOpen else { continue }
            nghttp2_submit_rst_stream(library, 0, slot.streamID, NGHTTP2_CANCEL.rawValue)
        }
        table.shrink()
        if !bodies.settle() { dropBodies() }
        return blockDeadline.map { $0 > now } ?? true
    }

    // What the callbacks do.

    /// A stream has begun.
    /// - Returns: Its slot; nil if it is refused.
    func open(streamID: Int32) -> RequestSlot? {
        guard streams.admits(), let slot = table.take() else { return nil }
        streams.open += 1
        slot.open(streamID: streamID, deadline: now + bodyTimeout)
        nghttp2_session_set_stream_user_data(library, streamID, UnsafeMutableRawPointer(bitPattern: slot.index + 1))
        return slot
    }

    /// The slot of a stream.
    func slot(streamID: Int32) -> RequestSlot? {
        guard let mark = nghttp2_session_get_stream_user_data(library, streamID) else { return nil }
        let index = Int(bitPattern: mark) - 1
        guard index < table.slots.count, table.slots[index].streamID == streamID else { return nil }
        return table.slots[index]
    }

    /// The request is as complete as it gets.
    func completed(_ slot: RequestSlot) {
        guard slot.phase == .receiving else { return }
        bodies.held -= slot.body.count
        slot.phase = .complete
        slot.deadline = nil
        complete.append(slot.index)
    }

    /// The stream is gone.
    func closed(_ slot: RequestSlot) {
        streams.open -= 1
        slot.isStreamOpen = false
        if slot.phase == .answered, !slot.isEnded { answersBeforeEnd -= 1 }
        switch slot.phase {
        case .receiving:
            bodies.held -= slot.body.count
            table.giveBack(slot)
        case .answered: table.giveBack(slot)
        case .complete: slot.phase = .abandoned
        case .unanswered:
            unansweredCount -= 1
            table.giveBack(slot)
        case .free, .abandoned, .inHand: break
        }
    }

    /// There is no room for all that has come of requests that have not ended: they are refused once they end.
    private func dropBodies() {
        for slot in table.slots where slot.phase == .receiving && !slot.body.isEmpty {
            slot.body = []
            slot.isBodyDropped = true
        }
        bodies.clear()
    }

    // How the library is spoken to.

    private static let fieldCapacity = 7

    private func note(failure code: Int32) {
        guard end == nil else { return }
        end = code == NGHTTP2_ERR_BAD_CLIENT_MAGIC.rawValue ? .notHTTP2 : .failed(code)
    }

    private func submit(_ slot: RequestSlot, _ reply: Reply) -> Int32 {
        var count = 0
        func add(_ name: StaticString, _ value: UnsafeRawBufferPointer, _ flags: nghttp2_nv_flag) {
            // The library copies what is not constant and changes nothing: its struct is only not const.
            fields[count] = nghttp2_nv(
                name: UnsafeMutablePointer(mutating: name.utf8Start),
                value: UnsafeMutablePointer(mutating: value.baseAddress?.assumingMemoryBound(to: UInt8.self)),
                namelen: name.utf8CodeUnitCount,
                valuelen: value.count,
                flags: UInt8(truncatingIfNeeded: NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue | flags.rawValue)
            )
            count += 1
        }
        func add(_ name: StaticString, _ value: StaticString) {
            add(
                name,
                UnsafeRawBufferPointer(start: value.utf8Start, count: value.utf8CodeUnitCount),
                NGHTTP2_NV_FLAG_NO_COPY_VALUE
            )
        }
        /// Adds an identifier, calls `then` while its bytes are in place, and returns what that returns.
        func adding(_ name: StaticString, _ id: IdentifierText?, then: () -> Int32) -> Int32 {
            guard let id else { return then() }
            return id.withBytes { bytes in
                // No two answers have the same one: kept out of the peer's table (RFC 7541 §6.2.2).
                add(name, bytes, NGHTTP2_NV_FLAG_NO_INDEX)
                return then()
            }
        }
        add(":status", reply.status.digits)
        return adding(slot.isAboutChannels ? "apns-request-id" : "apns-id", slot.replyID) {
            adding("apns-unique-id", slot.replyUniqueID) {
                if !reply.body.isEmpty { add("content-type", "application/json") }
                return reply.withWords { seconds, words, channel in
                    if !seconds.isEmpty { add("retry-after", seconds, NGHTTP2_NV_FLAG_NONE) }
                    if !words.isEmpty { add("herald-explanation", words, NGHTTP2_NV_FLAG_NONE) }
                    if !channel.isEmpty { add("apns-channel-id", channel, NGHTTP2_NV_FLAG_NO_INDEX) }
                    guard !reply.body.isEmpty else {
                        return nghttp2_submit_response(library, slot.streamID, fields, count, nil)
                    }
                    var body = nghttp2_data_provider(
                        source: nghttp2_data_source(ptr: UnsafeMutableRawPointer(bitPattern: slot.index + 1)),
                        read_callback: Self.readReplyBody
                    )
                    return nghttp2_submit_response(library, slot.streamID, fields, count, &body)
                }
            }
        }
    }

    private func announceFirst(_ count: Int) throws {
        func entry(_ id: nghttp2_settings_id, _ value: Int) -> nghttp2_settings_entry {
            nghttp2_settings_entry(settings_id: Int32(id.rawValue), value: UInt32(truncatingIfNeeded: value))
        }
        let entries = [
            entry(NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, 4096),
            entry(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, Int(streams.sessionCeiling)),
            entry(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits.drainedBodyBytes),
            entry(NGHTTP2_SETTINGS_MAX_FRAME_SIZE, 16_384),
            entry(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits.advertisedHeaderListBytes),
            entry(NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1),
        ]
        let window = Int32(clamping: limits.connectionWindowBytes)
        guard nghttp2_submit_settings(library, 0, entries, entries.count) == 0,
            nghttp2_session_set_local_window_size(library, 0, 0, window) == 0
        else { throw GatewayError.noMemory }
        streams.announce(count)
    }
}

/// How a GOAWAY blames the end (RFC 9113 §7).
enum GoAwayCode: UInt32 {
    case noError = 0
    case enhanceYourCalm = 0xB
}
