import CNghttp2
import NIOCore

// What libnghttp2 calls back. Inside a callback nothing is read, sent or deleted: the library does not allow it. Frames
// may be submitted, and a result other than zero ends the session.

private let proceed: Int32 = 0
private let stop = NGHTTP2_ERR_CALLBACK_FAILURE.rawValue

/// The session that a callback is for.
///
/// Not retained: the library's session lives no longer than the Swift one, and a retain and a release for each header
/// field would be a twentieth of the time that a request may take.
private func with(_ userData: UnsafeMutableRawPointer?, _ act: (HTTP2Session) -> Int32) -> Int32 {
    guard let userData else { return stop }
    return Unmanaged<HTTP2Session>.fromOpaque(userData)._withUnsafeGuaranteedRef { act($0) }
}

extension HTTP2Session {
    func makeLibrarySession() throws -> OpaquePointer {
        var callbacks: OpaquePointer?
        var option: OpaquePointer?
        defer {
            nghttp2_session_callbacks_del(callbacks)
            nghttp2_option_del(option)
        }
        guard nghttp2_session_callbacks_new(&callbacks) == 0, nghttp2_option_new(&option) == 0 else {
            throw GatewayError.noMemory
        }
        nghttp2_option_set_no_auto_window_update(option, 1)
        nghttp2_option_set_no_closed_streams(option, 1)
        nghttp2_option_set_max_outbound_ack(option, limits.unsentAcknowledgements)
        nghttp2_option_set_max_continuations(option, limits.continuations)
        // The library's own limit counts by whole seconds of a clock of its own; ours counts by the session's.
        nghttp2_option_set_stream_reset_rate_limit(option, UInt64(UInt32.max), UInt64(UInt32.max))
        // Frames of unknown kinds are ignored either way (RFC 9113 §4.1); only those that are asked for are told of.
        for kind in (UInt8(NGHTTP2_CONTINUATION.rawValue) + 1)...UInt8.max {
            nghttp2_option_set_user_recv_extension_type(option, kind)
        }
        setCallbacks(callbacks)
        var session: OpaquePointer?
        guard nghttp2_session_server_new2(&session, callbacks, Unmanaged.passUnretained(self).toOpaque(), option) == 0,
            let session
        else { throw GatewayError.noMemory }
        return session
    }

    private func setCallbacks(_ callbacks: OpaquePointer?) {
        nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks) { _, header, userData in
            guard let header else { return stop }
            return with(userData) { $0.began(header.pointee) ? proceed : stop }
        }
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { session, frame, userData in
            guard let frame else { return stop }
            return with(userData) { $0.beganBlock(frame.pointee, session) }
        }
        nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _,
            _,
            name,
            nameCount,
            value,
            valueCount,
            _,
            userData in
            let name = UnsafeBufferPointer(start: name, count: nameCount)
            let value = UnsafeBufferPointer(start: value, count: valueCount)
            return with(userData) { $0.received(name, value, isMalformed: false) ? proceed : stop }
        }
        nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks) {
            _,
            _,
            name,
            nameCount,
            value,
            valueCount,
            _,
            userData in
            let name = UnsafeBufferPointer(start: name, count: nameCount)
            let value = UnsafeBufferPointer(start: value, count: valueCount)
            return with(userData) { $0.received(name, value, isMalformed: true) ? proceed : stop }
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            _,
            _,
            streamID,
            bytes,
            count,
            userData in
            with(userData) { session in
                session.received(UnsafeBufferPointer(start: bytes, count: count), streamID: streamID)
                return proceed
            }
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, userData in
            guard let frame else { return stop }
            return with(userData) { session in
                session.received(frame.pointee)
                return proceed
            }
        }
        nghttp2_session_callbacks_set_on_frame_send_callback(callbacks) { session, frame, userData in
            guard let frame else { return stop }
            return with(userData) { $0.sent(frame.pointee.hd, session) ? proceed : stop }
        }
        nghttp2_session_callbacks_set_unpack_extension_callback(callbacks) { _, _, _, _ in
            NGHTTP2_ERR_CANCEL.rawValue
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, streamID, _, userData in
            with(userData) { session in
                if let slot = session.slot(streamID: streamID) { session.closed(slot) }
                return proceed
            }
        }
    }

    /// Hands the library the next bytes of an answer's body: all at once wherever its window allows, since several
    /// clients take one DATA frame for the whole body.
    static let readReplyBody: nghttp2_data_source_read_callback = {
        _,
        streamID,
        buffer,
        capacity,
        flags,
        _,
        userData in
        var taken = 0
        let result = with(userData) { session in
            guard let buffer, let flags, let slot = session.slot(streamID: streamID) else { return stop }
            taken = min(capacity, slot.replyBody.count - slot.replyOffset)
            slot.replyBody.withUnsafeBytes { body in
                UnsafeMutableRawBufferPointer(start: buffer, count: capacity)
                    .copyMemory(
                        from: UnsafeRawBufferPointer(rebasing: body[slot.replyOffset..<slot.replyOffset + taken])
                    )
            }
            slot.replyOffset += taken
            if slot.replyOffset == slot.replyBody.count { flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
            return proceed
        }
        return result == proceed ? taken : Int(result)
    }

    /// A frame's first nine bytes are here.
    private func began(_ frame: nghttp2_frame_hd) -> Bool {
        var charge = 0
        switch UInt32(frame.type) {
        case NGHTTP2_DATA.rawValue:
            // An empty one is honest only as the end of a request.
            if frame.length == 0, frame.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) == 0 { charge = 1 }
        case NGHTTP2_HEADERS.rawValue:
            // A block that belongs to no request is decoded without a word to us, at a microsecond for each byte that
            // refers to the table. What begins a request gets this back.
            charge = 1 + frame.length / 64
            if frame.flags & UInt8(NGHTTP2_FLAG_END_HEADERS.rawValue) == 0 { charge += limits.controlFrames / 4 }
            blockCharge = charge
        case NGHTTP2_CONTINUATION.rawValue:
            break
        case NGHTTP2_RST_STREAM.rawValue:
            charge = 1
            guard resetsReceived.take(1, now: now) else {
                end = end ?? .resetFlood
                return false
            }
        default:
            charge = 1
        }
        guard charge == 0 || control.take(charge, now: now) else {
            end = end ?? .controlFlood
            return false
        }
        return true
    }

    private func beganBlock(_ frame: nghttp2_frame, _ session: OpaquePointer?) -> Int32 {
        blockBytes = 0
        block = nil
        guard UInt32(frame.headers.cat.rawValue) == NGHTTP2_HCAT_REQUEST.rawValue else {
            // Trailers: counted, and ignored.
            blockDeadline = now + headerBlockTimeout
            return proceed
        }
        guard let slot = open(streamID: frame.hd.stream_id) else {
            nghttp2_submit_rst_stream(session, 0, frame.hd.stream_id, NGHTTP2_REFUSED_STREAM.rawValue)
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
        }
        control.earn(blockCharge + limits.controlFramesPerRequest)
        block = slot
        blockDeadline = now + headerBlockTimeout
        return proceed
    }

    private func received(
        _ name: UnsafeBufferPointer<UInt8>,
        _ value: UnsafeBufferPointer<UInt8>,
        isMalformed: Bool
    ) -> Bool {
        blockBytes += name.count + value.count + 32
        guard blockBytes <= limits.headerBlockBytes else {
            end = end ?? .headerBlockTooLarge
            return false
        }
        if let block, let field = RequestField(name: name) {
            block.fields.note(field, value, isMalformed: isMalformed)
        }
        return true
    }

    private func received(_ bytes: UnsafeBufferPointer<UInt8>, streamID: Int32) {
        unconsumedBytes += bytes.count
        guard let slot = slot(streamID: streamID), slot.phase == .receiving else { return }
        slot.bodyByteCount += bytes.count
        let kept = slot.isBodyDropped ? 0 : min(limits.bodyBytes - slot.body.count, bytes.count)
        if kept > 0 {
            slot.body.append(contentsOf: bytes.prefix(kept))
            bodies.held += kept
        }
        if slot.bodyByteCount >= limits.drainedBodyBytes { completed(slot) }
    }

    private func received(_ frame: nghttp2_frame) {
        let flags = UInt32(frame.hd.flags)
        switch UInt32(frame.hd.type) {
        case NGHTTP2_HEADERS.rawValue:
            block = nil
            blockDeadline = nil
            if flags & NGHTTP2_FLAG_END_STREAM.rawValue != 0 { ended(frame.hd.stream_id) }
        case NGHTTP2_DATA.rawValue:
            if flags & NGHTTP2_FLAG_END_STREAM.rawValue != 0 { ended(frame.hd.stream_id) }
        case NGHTTP2_SETTINGS.rawValue:
            if flags & NGHTTP2_FLAG_ACK.rawValue != 0 { streams.acknowledged() } else { hasClientSettings = true }
        default:
            break
        }
    }

    private func ended(_ streamID: Int32) {
        guard let slot = slot(streamID: streamID) else { return }
        if slot.phase == .answered, !slot.isEnded { answersBeforeEnd -= 1 }
        slot.isEnded = true
        completed(slot)
    }

    private func sent(_ frame: nghttp2_frame_hd, _ session: OpaquePointer?) -> Bool {
        let type = UInt32(frame.type)
        if type == NGHTTP2_RST_STREAM.rawValue {
            guard resets.take(1, now: now) else {
                end = end ?? .resetFlood
                return false
            }
        } else if answersBeforeEnd > 0, type == NGHTTP2_DATA.rawValue || type == NGHTTP2_HEADERS.rawValue,
            UInt32(frame.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0,
            let slot = slot(streamID: frame.stream_id), !slot.isEnded
        {
            // The whole answer is out and the request has not ended: the client need not send the rest (RFC 9113 §8.1).
            nghttp2_submit_rst_stream(session, 0, frame.stream_id, NGHTTP2_NO_ERROR.rawValue)
        }
        return true
    }
}
