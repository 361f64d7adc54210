import CNghttp2

private let proceed: Int32 = 0
private let stop = NGHTTP2_ERR_CALLBACK_FAILURE.rawValue

/// Calls a session from a callback.
///
/// Not retained: the library's session lives no longer than the Swift one, and a retain and release per header field
/// would be a twentieth of the time of a request.
private func with(_ userData: UnsafeMutableRawPointer?, _ act: (HTTP2Session) -> Int32) -> Int32 {
    guard let userData else { return stop }
    return Unmanaged<HTTP2Session>.fromOpaque(userData)._withUnsafeGuaranteedRef { act($0) }
}

/// The server's binding to libnghttp2: creates its session and forwards its callbacks to an ``HTTP2Session``.
///
/// The library allows no reading, sending or deleting inside a callback. Frames may be submitted; a result other than
/// zero ends the session. The client in HeraldProvider has its own binding: a C callback cannot be generic, so a shared
/// one would need a dynamic call per header field.
enum HTTP2Callbacks {
    static func makeSession(for session: HTTP2Session, _ limits: HTTP2Limits) throws -> OpaquePointer {
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
        // FloodGuard limits resets; the library's own limit counts whole seconds of its own clock.
        nghttp2_option_set_stream_reset_rate_limit(option, UInt64(UInt32.max), UInt64(UInt32.max))
        setCallbacks(callbacks)
        var library: OpaquePointer?
        let userData = Unmanaged.passUnretained(session).toOpaque()
        guard nghttp2_session_server_new2(&library, callbacks, userData, option) == 0, let library else {
            throw GatewayError.noMemory
        }
        return library
    }

    /// Submits the SETTINGS that begin a connection; `streams` is the limit that the library knows.
    static func sendFirstSettings(on library: OpaquePointer?, _ limits: HTTP2Limits, streams: UInt32) throws {
        func entry(_ id: nghttp2_settings_id, _ value: Int) -> nghttp2_settings_entry {
            nghttp2_settings_entry(settings_id: Int32(id.rawValue), value: UInt32(truncatingIfNeeded: value))
        }
        let entries = [
            entry(NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, 4096),
            entry(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, Int(streams)),
            entry(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits.drainedBodyBytes),
            entry(NGHTTP2_SETTINGS_MAX_FRAME_SIZE, 16_384),
            entry(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits.advertisedHeaderListBytes),
            entry(NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1),
        ]
        let window = Int32(clamping: limits.connectionWindowBytes)
        guard nghttp2_submit_settings(library, 0, entries, entries.count) == 0,
            nghttp2_session_set_local_window_size(library, 0, 0, window) == 0
        else { throw GatewayError.noMemory }
    }

    private static func setCallbacks(_ callbacks: OpaquePointer?) {
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, userData in
            guard let frame else { return stop }
            return with(userData) { session in
                session.headerBlockBegan(frame.pointee)
                return proceed
            }
        }
        nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            field($7, .init(start: $2, count: $3), .init(start: $4, count: $5), isMalformed: false)
        }
        nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks) {
            field($7, .init(start: $2, count: $3), .init(start: $4, count: $5), isMalformed: true)
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            data($5, .init(start: $3, count: $4), streamID: $2)
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, userData in
            guard let frame else { return stop }
            return with(userData) { session in
                session.frameReceived(frame.pointee.hd)
                return proceed
            }
        }
        nghttp2_session_callbacks_set_on_frame_send_callback(callbacks) { _, frame, userData in
            guard let frame else { return stop }
            return with(userData) { $0.frameSent(frame.pointee.hd) ? proceed : stop }
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, streamID, _, userData in
            with(userData) { session in
                session.streamClosed(streamID)
                return proceed
            }
        }
    }

    /// The body of a response, for the library.
    static let readReplyBody: nghttp2_data_source_read_callback = {
        replyBody($6, into: .init(start: $2, count: $3), flags: $4, streamID: $1)
    }
}

private func field(
    _ userData: UnsafeMutableRawPointer?,
    _ name: UnsafeBufferPointer<UInt8>,
    _ value: UnsafeBufferPointer<UInt8>,
    isMalformed: Bool
) -> Int32 {
    with(userData) { session in
        switch session.fieldReceived(name, value, isMalformed: isMalformed) {
        case .added: proceed
        // The library resets the stream with PROTOCOL_ERROR.
        case .malformed: NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
        case .tooLarge: stop
        }
    }
}

private func data(_ userData: UnsafeMutableRawPointer?, _ bytes: UnsafeBufferPointer<UInt8>, streamID: Int32) -> Int32 {
    with(userData) { session in
        session.dataReceived(bytes, streamID: streamID)
        return proceed
    }
}

/// Copies the next bytes of a response body: all at once if the window allows, because several clients take one DATA
/// frame for the whole body.
private func replyBody(
    _ userData: UnsafeMutableRawPointer?,
    into buffer: UnsafeMutableRawBufferPointer,
    flags: UnsafeMutablePointer<UInt32>?,
    streamID: Int32
) -> Int {
    var taken = 0
    let result = with(userData) { session in
        guard let flags, let request = session.request(streamID: streamID) else { return stop }
        taken = min(buffer.count, request.answer.body.count - request.answer.offset)
        let range = request.answer.offset..<request.answer.offset + taken
        request.answer.body.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[range])) }
        request.answer.offset += taken
        if request.answer.offset == request.answer.body.count { flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
        return proceed
    }
    return result == proceed ? taken : Int(result)
}
