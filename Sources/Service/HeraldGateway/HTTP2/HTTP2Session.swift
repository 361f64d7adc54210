import CNghttp2
import NIOCore

/// The server side of one HTTP/2 connection: bytes in, requests out; replies in, bytes out.
///
/// libnghttp2 implements the protocol; no other type sees it.
/// 1. Collects each request in a ``PendingRequest`` and returns it when it is complete (``nextRequest()``).
/// 2. Turns replies into frames when asked for bytes (``drain(into:upTo:)``).
/// 3. Enforces the limits that the library lacks: ``FloodGuard``, ``HeaderBlock``, ``BodyReservation``, deadlines.
///    ``ClosedStreams`` and ``FrameScanner`` find the errors that it ignores.
/// 4. Announces the number of streams, and refuses more once the client knows it (``StreamLimit``).
///
/// It stays on one event loop, has no clock (callers pass the time) and does no I/O.
///
/// The properties that callbacks touch for every header field skip the run-time check for overlapping accesses, which was
/// 3 % of accepting a request. That is safe because no change of one of them calls back into the session.
final class HTTP2Session {
    private let limits: HTTP2Limits
    private var library: OpaquePointer?
    private let responses = ResponseWriter()
    private let timeouts: (body: TimeAmount, reply: TimeAmount, settings: TimeAmount, goAway: TimeAmount)
    @exclusivity(unchecked) private var table: RequestTable
    @exclusivity(unchecked) private var bodies: BodyReservation
    @exclusivity(unchecked) private var scanner = FrameScanner()
    @exclusivity(unchecked) private var closed = ClosedStreams()
    @exclusivity(unchecked) private var flood: FloodGuard
    @exclusivity(unchecked) private var block: HeaderBlock
    @exclusivity(unchecked) private var streams: StreamLimit
    @exclusivity(unchecked) private var now: NIODeadline
    @exclusivity(unchecked) private var unconsumedBytes = 0
    /// Why the session is over; nil while it goes on.
    private(set) var end: SessionEnd?
    /// Whether the client's first SETTINGS arrived, which end the preface (RFC 9113 §3.4).
    var hasClientSettings: Bool { streams.hasClientSettings }

    /// Begins a session that first advertises this number of streams; all connections share `bodies`.
    /// - Throws: ``GatewayError`` if there is no memory for the session.
    init(limits: HTTP2Limits, streams: Int, bodies: BodyMemory, now: NIODeadline) throws {
        self.limits = limits
        self.now = now
        timeouts = (
            TimeAmount(limits.bodyTimeout), TimeAmount(limits.replyTimeout), TimeAmount(limits.settingsTimeout),
            TimeAmount(limits.goAwayTimeout)
        )
        table = RequestTable(limit: limits.requestsInHand)
        self.bodies = BodyReservation(memory: bodies, free: limits.bodyBytes)
        flood = FloodGuard(limits, now: now)
        block = HeaderBlock(limits)
        self.streams = StreamLimit(ceiling: limits.concurrentStreams)
        library = try HTTP2Callbacks.makeSession(for: self, limits)
        try HTTP2Callbacks.sendFirstSettings(on: library, limits, streams: self.streams.sessionCeiling)
        self.streams.announce(streams)
    }

    deinit {
        bodies.clear()
        nghttp2_session_del(library)
    }

    // MARK: - Requests

    /// Processes bytes of the peer; ``nextRequest()`` returns the requests that they complete.
    /// - Returns: Why the session is over; nil if it goes on.
    func receive(_ bytes: UnsafeRawBufferPointer, now: NIODeadline) -> SessionEnd? {
        self.now = now
        guard end == nil else { return end }
        streams.received(at: now)
        var position = 0
        var processed = 0
        while end == nil, let frame = scanner.next(in: bytes, at: &position) {
            process(bytes[processed..<frame.offset])
            processed = frame.offset
            if end == nil { frameBegan(frame) }
        }
        process(bytes[processed...])
        // The library does not tell of the end of a malformed block.
        if !scanner.isInHeaderBlock { block.end() }
        if !bodies.update() { dropBodies() }
        return end
    }

    /// The next complete request, in order of completion.
    func nextRequest() -> PendingRequest? {
        table.nextComplete()
    }

    /// The request with a number, if it is still pending.
    func request(_ number: UInt64) -> PendingRequest? {
        table.request(number)
    }

    /// The post office has the request; its stream may end before the completion comes.
    func keepPosted(_ request: PendingRequest) {
        request.phase = .posted
    }

    /// The number of requests that will still be answered.
    var requestCount: Int { table.pendingCount }

    /// The requests that the post office has, and that have no answer yet.
    var posted: [PendingRequest] { table.pool.filter { $0.phase == .posted } }

    // MARK: - Replies

    /// Answers a request, or releases it if its stream is gone.
    func reply(to request: PendingRequest, _ reply: Reply) {
        guard request.stream.isOpen else { return table.release(request) }
        request.phase = .answered
        request.deadline = now + timeouts.reply
        if !request.isEnded { table.answersBeforeEnd += 1 }
        request.body = []
        request.answer.body = reply.body
        if responses.submit(reply, to: request, on: library) != 0 {
            // No memory: the client sees a reset instead of an answer.
            nghttp2_submit_rst_stream(library, 0, request.stream.id, NGHTTP2_INTERNAL_ERROR.rawValue)
        }
    }

    /// Leaves a request without an answer: its stream is reset, or stays open until the client or the connection ends it.
    func leaveUnanswered(_ request: PendingRequest, reset: StreamReset? = nil) {
        guard request.stream.isOpen else { return table.release(request) }
        table.leaveUnanswered(request)
        if let reset { nghttp2_submit_rst_stream(library, 0, request.stream.id, reset.rawValue) }
    }

    /// Returns the flow-control window of the bytes received since the last call; once per read burst.
    func consume() {
        // Only now, because it is written before anything else is read.
        if let second = closed.secondGoAway, second.due <= now { goAway(second.json) }
        guard unconsumedBytes > 0 else { return }
        nghttp2_session_consume_connection(library, unconsumedBytes)
        unconsumedBytes = 0
    }

    /// Appends pending frames until there are none or the buffer has `limit` bytes.
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

    /// Whether the protocol is over: GOAWAY is sent, and nothing is left to read or send.
    var isOver: Bool {
        nghttp2_session_want_read(library) == 0 && nghttp2_session_want_write(library) == 0
    }

    // MARK: - Connection

    /// Announces another number of streams.
    func announce(streams count: Int) {
        guard count != streams.announced else { return }
        var entry = nghttp2_settings_entry(
            settings_id: Int32(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue),
            value: streams.sessionCeiling
        )
        guard nghttp2_submit_settings(library, 0, &entry, 1) == 0 else { return }
        streams.announce(count)
    }

    /// Submits a GOAWAY; APNs puts the reason as JSON into its debug data.
    ///
    /// `last` is the last stream that is processed; nil for the last one that arrived. With `disowning`, all requests
    /// are declared unprocessed.
    func goAway(_ json: [UInt8], disowning: Bool = false, upTo last: Int32? = nil) {
        closed.isGoingAway = true
        closed.secondGoAway = nil
        let last = last ?? (disowning ? 0 : nghttp2_session_get_last_proc_stream_id(library))
        nghttp2_submit_goaway(library, 0, last, NGHTTP2_NO_ERROR.rawValue, json, json.count)
    }

    /// Begins a graceful end (RFC 9113 §6.8): a GOAWAY that covers all streams, and another once the client has seen it.
    ///
    /// The client has seen it once it answers the PING that follows it; for one that does not, a time decides.
    func goAwayInTwoSteps(_ json: [UInt8]) {
        nghttp2_submit_shutdown_notice(library)
        closed.secondGoAway = (json, now + timeouts.goAway)
    }

    /// Writes a last GOAWAY (RFC 9113 §7), without the library, whose state is unreliable after a
    /// failure.
    func writeLastFrame(into buffer: inout ByteBuffer) {
        let last = nghttp2_session_get_last_proc_stream_id(library)
        buffer.writeInteger(UInt32(8) << 8 | UInt32(NGHTTP2_GOAWAY.rawValue))
        buffer.writeInteger(UInt8(0))
        buffer.writeInteger(UInt32(0))
        buffer.writeInteger(last)
        let code = end == .settingsTimeout ? NGHTTP2_SETTINGS_TIMEOUT : NGHTTP2_ENHANCE_YOUR_CALM
        buffer.writeInteger(code.rawValue)
    }

    /// Resets the streams whose deadline has passed, and ends the session of a client that ignores SETTINGS.
    /// - Returns: false if a header block is overdue.
    func sweep(now: NIODeadline) -> Bool {
        self.now = now
        if streams.isOverdue(timeouts.settings, now: now) { end = end ?? .settingsTimeout }
        for request in table.pool {
            guard let deadline = request.deadline, deadline <= now else { continue }
            request.deadline = nil
            guard request.stream.isOpen else { continue }
            nghttp2_submit_rst_stream(library, 0, request.stream.id, NGHTTP2_CANCEL.rawValue)
        }
        table.shrink()
        if !bodies.update() { dropBodies() }
        return block.deadline.map { $0 > now } ?? true
    }

    // MARK: - Callbacks

    /// A header block begins.
    func headerBlockBegan(_ frame: nghttp2_frame) {
        guard UInt32(frame.headers.cat.rawValue) == NGHTTP2_HCAT_REQUEST.rawValue else {
            // Trailers: counted, and ignored.
            return block.begin(for: nil, now: now)
        }
        guard streams.admits(), let request = table.take() else {
            // Counted and ignored, too. A failure of the callback would make the library send another reset.
            nghttp2_submit_rst_stream(library, 0, frame.hd.stream_id, NGHTTP2_REFUSED_STREAM.rawValue)
            return block.begin(for: nil, now: now)
        }
        streams.open += 1
        request.open(streamID: frame.hd.stream_id, at: now, deadline: now + timeouts.body)
        let mark = UnsafeMutableRawPointer(bitPattern: request.index + 1)
        nghttp2_session_set_stream_user_data(library, frame.hd.stream_id, mark)
        flood.beganRequest()
        block.begin(for: request, now: now)
    }

    /// A header field arrived; one that is too large ends the session.
    func fieldReceived(
        _ name: UnsafeBufferPointer<UInt8>,
        _ value: UnsafeBufferPointer<UInt8>,
        isMalformed: Bool
    ) -> HeaderBlock.Outcome {
        let outcome = block.add(name, value, isMalformed: isMalformed)
        if outcome == .tooLarge { end = end ?? .headerBlockTooLarge }
        return outcome
    }

    func dataReceived(_ bytes: UnsafeBufferPointer<UInt8>, streamID: Int32) {
        unconsumedBytes += bytes.count
        guard let request = request(streamID: streamID), request.phase == .receiving else { return }
        request.received.byteCount += bytes.count
        let kept = request.received.isDropped ? 0 : min(limits.bodyBytes - request.body.count, bytes.count)
        if kept > 0 {
            request.body.append(contentsOf: bytes.prefix(kept))
            bodies.held += kept
        }
        if request.received.byteCount >= limits.drainedBodyBytes { completed(request) }
    }

    func frameReceived(_ frame: nghttp2_frame_hd) {
        let flags = UInt32(frame.flags)
        switch UInt32(frame.type) {
        case NGHTTP2_HEADERS.rawValue:
            block.end()
            if flags & NGHTTP2_FLAG_END_STREAM.rawValue != 0 { ended(frame.stream_id) }
        case NGHTTP2_DATA.rawValue:
            if flags & NGHTTP2_FLAG_END_STREAM.rawValue != 0 { ended(frame.stream_id) }
        case NGHTTP2_SETTINGS.rawValue:
            if flags & NGHTTP2_FLAG_ACK.rawValue != 0 {
                streams.acknowledged()
            } else {
                streams.hasClientSettings = true
            }
        case NGHTTP2_PING.rawValue:
            if flags & NGHTTP2_FLAG_ACK.rawValue != 0 { closed.secondGoAway?.due = now }
        default:
            break
        }
    }

    /// A frame was sent.
    /// - Returns: false to end the session.
    func frameSent(_ frame: nghttp2_frame_hd) -> Bool {
        let type = UInt32(frame.type)
        if type == NGHTTP2_RST_STREAM.rawValue {
            closed.sentReset(frame.stream_id)
            // The client does not provoke the reset of a drill or of a failure of the service.
            guard request(streamID: frame.stream_id)?.phase == .unanswered || flood.sentReset(now: now) else {
                end = end ?? .resetFlood
                return false
            }
        } else if table.answersBeforeEnd > 0, type == NGHTTP2_DATA.rawValue || type == NGHTTP2_HEADERS.rawValue,
            UInt32(frame.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0,
            let request = request(streamID: frame.stream_id), !request.isEnded
        {
            // The answer is complete and the request is not: the client need not send the rest (RFC 9113 §8.1).
            nghttp2_submit_rst_stream(library, 0, frame.stream_id, NGHTTP2_NO_ERROR.rawValue)
        } else if type == NGHTTP2_GOAWAY.rawValue, closed.secondGoAway != nil {
            // Not earlier: the library sends a PING before what waits.
            nghttp2_submit_ping(library, 0, nil)
        }
        return true
    }

    func streamClosed(_ streamID: Int32) {
        guard let request = request(streamID: streamID) else { return }
        streams.open -= 1
        request.stream.isOpen = false
        if request.phase == .answered, !request.isEnded { table.answersBeforeEnd -= 1 }
        switch request.phase {
        case .receiving:
            bodies.held -= request.body.count
            table.release(request)
        case .answered, .unanswered: table.release(request)
        case .complete: request.phase = .abandoned
        case .free, .abandoned, .posted: break
        }
    }

    func request(streamID: Int32) -> PendingRequest? {
        guard let mark = nghttp2_session_get_stream_user_data(library, streamID) else { return nil }
        let index = Int(bitPattern: mark) - 1
        guard index < table.pool.count, table.pool[index].stream.id == streamID else { return nil }
        return table.pool[index]
    }

    // MARK: - Private

    private func process(_ bytes: Slice<UnsafeRawBufferPointer>) {
        let bytes = UnsafeRawBufferPointer(rebasing: bytes)
        guard end == nil, let base = bytes.baseAddress, !bytes.isEmpty else { return }
        let result = nghttp2_session_mem_recv(library, base.assumingMemoryBound(to: UInt8.self), bytes.count)
        if result < 0 { note(failure: Int32(truncatingIfNeeded: result)) }
    }

    /// The header of a frame arrived; the library has processed everything before it.
    private func frameBegan(_ frame: FrameScanner.Frame) {
        end = flood.received(frame.header, now: now)
        guard end == nil, let error = error(of: frame) else { return }
        nghttp2_session_terminate_session(library, error.rawValue)
    }

    /// The connection error of a frame that the library ignores; nil if there is none.
    private func error(of frame: FrameScanner.Frame) -> nghttp2_error_code? {
        let streamID = frame.header.stream_id
        if frame.isTooShort { return NGHTTP2_FRAME_SIZE_ERROR }
        switch UInt32(frame.header.type) {
        case NGHTTP2_PRIORITY.rawValue:
            // Ignored, because Herald announces SETTINGS_NO_RFC7540_PRIORITIES.
            return streamID == 0 || streamID == frame.parent ? NGHTTP2_PROTOCOL_ERROR : nil
        case NGHTTP2_HEADERS.rawValue:
            if closed.opens(streamID) { return nil }
            fallthrough
        case NGHTTP2_DATA.rawValue:
            // The library forgets closed streams, which would cost hundreds of bytes each.
            guard nghttp2_session_find_stream(library, streamID) == nil, !closed.isGoingAway else { return nil }
            return closed.error(on: streamID)
        default:
            return nil
        }
    }

    /// The client has ended a request.
    private func ended(_ streamID: Int32) {
        guard let request = request(streamID: streamID) else { return }
        if request.phase == .answered, !request.isEnded { table.answersBeforeEnd -= 1 }
        request.isEnded = true
        completed(request)
    }

    /// Nothing more of a request will be read.
    private func completed(_ request: PendingRequest) {
        guard request.phase == .receiving else { return }
        bodies.held -= request.body.count
        request.deadline = nil
        table.completed(request)
    }

    /// Drops all unfinished bodies for lack of memory; their requests are refused once they end.
    private func dropBodies() {
        for request in table.pool where request.phase == .receiving && !request.body.isEmpty {
            request.body = []
            request.received.isDropped = true
        }
        bodies.clear()
    }

    private func note(failure code: Int32) {
        guard end == nil else { return }
        end = code == NGHTTP2_ERR_BAD_CLIENT_MAGIC.rawValue ? .notHTTP2 : .failed(code)
    }
}
