import CNghttp2
import NIOCore

// Callbacks of libnghttp2. Inside a callback nothing is read, sent or deleted: the library does not allow it. A result
// other than zero ends the session.

private let proceed: Int32 = 0
private let stop = NGHTTP2_ERR_CALLBACK_FAILURE.rawValue

/// The session that a callback is for.
///
/// Not retained: the library's session lives no longer than the Swift one.
private func with(_ userData: UnsafeMutableRawPointer?, _ act: (ClientSession) -> Int32) -> Int32 {
    guard let userData else { return stop }
    return Unmanaged<ClientSession>.fromOpaque(userData)._withUnsafeGuaranteedRef { act($0) }
}

extension ClientSession {
    func makeLibrarySession() throws -> OpaquePointer {
        var callbacks: OpaquePointer?
        var option: OpaquePointer?
        defer {
            nghttp2_session_callbacks_del(callbacks)
            nghttp2_option_del(option)
        }
        guard nghttp2_session_callbacks_new(&callbacks) == 0, nghttp2_option_new(&option) == 0 else {
            throw Self.noMemory
        }
        nghttp2_option_set_no_closed_streams(option, 1)
        // Who sends is held to the service's number by us; the library must not hold back what we let through.
        nghttp2_option_set_peer_max_concurrent_streams(option, UInt32(Int32.max))
        setCallbacks(callbacks)
        var session: OpaquePointer?
        guard nghttp2_session_client_new2(&session, callbacks, Unmanaged.passUnretained(self).toOpaque(), option) == 0,
            let session
        else { throw Self.noMemory }
        return session
    }

    private func setCallbacks(_ callbacks: OpaquePointer?) {
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, userData in
            guard let frame else { return stop }
            return with(userData) { session in
                session.block = session.calls[frame.pointee.hd.stream_id]
                session.blockBytes = 0
                return proceed
            }
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
            return with(userData) { $0.received(name, value) }
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            library,
            _,
            streamID,
            bytes,
            count,
            userData in
            with(userData) { session in
                guard let call = session.calls[streamID], !call.answer.isCut else { return proceed }
                let room = call.answerLimit - call.answer.body.count
                call.answer.body.append(contentsOf: UnsafeBufferPointer(start: bytes, count: min(count, room)))
                if count > room {
                    call.answer.isCut = true
                    nghttp2_submit_rst_stream(library, 0, streamID, NGHTTP2_CANCEL.rawValue)
                }
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
        nghttp2_session_callbacks_set_on_frame_send_callback(callbacks) { _, frame, userData in
            guard let frame else { return stop }
            return with(userData) { session in
                let head = frame.pointee.hd
                let type = UInt32(head.type)
                if type == NGHTTP2_DATA.rawValue || type == NGHTTP2_HEADERS.rawValue,
                    UInt32(head.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0
                {
                    session.calls[head.stream_id]?.progress.isWhollySent = true
                }
                return proceed
            }
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, streamID, code, userData in
            with(userData) { session in
                session.closed(streamID, code)
                return proceed
            }
        }
    }

    /// Hands the library the next bytes of a request's body.
    static let readBody: nghttp2_data_source_read_callback = { _, streamID, buffer, capacity, flags, _, userData in
        var taken = 0
        let result = with(userData) { session in
            guard let buffer, let flags, let call = session.calls[streamID] else { return stop }
            taken = min(capacity, call.body.count - call.progress.bodyOffset)
            call.body.withUnsafeBytes { body in
                UnsafeMutableRawBufferPointer(start: buffer, count: capacity)
                    .copyMemory(
                        from: UnsafeRawBufferPointer(
                            rebasing: body[call.progress.bodyOffset..<call.progress.bodyOffset + taken]
                        )
                    )
            }
            call.progress.bodyOffset += taken
            if call.progress.bodyOffset == call.body.count { flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
            return proceed
        }
        return result == proceed ? taken : Int(result)
    }

    private func received(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) -> Int32 {
        blockBytes += name.count + value.count + 32
        guard blockBytes <= Self.maximumHeaderBytes else {
            block?.answer.isCut = true
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
        }
        block?.answer.note(name, value)
        return proceed
    }

    private func received(_ frame: nghttp2_frame) {
        let flags = UInt32(frame.hd.flags)
        switch UInt32(frame.hd.type) {
        case NGHTTP2_HEADERS.rawValue, NGHTTP2_DATA.rawValue:
            block = nil
            // An informational answer (1xx) ends no stream: the library passes on only a final one's end.
            if flags & NGHTTP2_FLAG_END_STREAM.rawValue != 0 { calls[frame.hd.stream_id]?.progress.isAnswered = true }
        case NGHTTP2_SETTINGS.rawValue:
            if flags & NGHTTP2_FLAG_ACK.rawValue == 0 { hasSettings = true }
        case NGHTTP2_GOAWAY.rawValue:
            let count = min(frame.goaway.opaque_data_len, Self.maximumDebugBytes)
            receivedGoAway = GoAway(
                lastStream: frame.goaway.last_stream_id,
                code: frame.goaway.error_code,
                words: frame.goaway.opaque_data.map { Array(UnsafeBufferPointer(start: $0, count: count)) } ?? []
            )
        default:
            break
        }
    }

    /// A stream is gone.
    ///
    /// The library closes those above the last of a GOAWAY as refused.
    private func closed(_ streamID: Int32, _ code: UInt32) {
        guard let call = calls.removeValue(forKey: streamID) else { return }
        if block === call { block = nil }
        if call.progress.isAnswered, !call.answer.isCut, call.answer.status >= 200 {
            ended.append((call, .answered))
        } else if code == NGHTTP2_REFUSED_STREAM.rawValue || !call.progress.isWhollySent {
            ended.append((call, .untouched))
        } else {
            ended.append((call, .lost(code)))
        }
    }
}
