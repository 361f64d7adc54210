import CNghttp2

/// Passes responses to libnghttp2, through one array of header fields that is reused.
struct ResponseWriter: ~Copyable {
    private static let capacity = 7

    private let fields: UnsafeMutablePointer<nghttp2_nv>
    /// The digits of the status.
    private let digits = UnsafeMutablePointer<UInt8>.allocate(capacity: 3)

    init() {
        fields = .allocate(capacity: Self.capacity)
        fields.initialize(repeating: nghttp2_nv(), count: Self.capacity)
    }

    deinit {
        fields.deallocate()
        digits.deallocate()
    }

    /// Submits the response to a request.
    /// - Returns: 0, or the library's error code.
    func submit(_ reply: Reply, to request: PendingRequest, on library: OpaquePointer?) -> Int32 {
        let fields = fields
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
        /// Adds an identifier and calls `then` while its bytes are valid.
        func adding(_ name: StaticString, _ id: IdentifierText?, then: () -> Int32) -> Int32 {
            guard let id else { return then() }
            return id.withBytes { bytes in
                // Unique to this response: kept out of the peer's table (RFC 7541 §6.2.2).
                add(name, bytes, NGHTTP2_NV_FLAG_NO_INDEX)
                return then()
            }
        }
        // As they are not constant, the library copies them.
        var rest = reply.status.rawValue
        for place in (0..<3).reversed() {
            digits[place] = UInt8(truncatingIfNeeded: 48 + rest % 10)
            rest /= 10
        }
        add(":status", UnsafeRawBufferPointer(start: digits, count: 3), NGHTTP2_NV_FLAG_NONE)
        return adding(request.answer.isAboutChannels ? "apns-request-id" : "apns-id", request.answer.id) {
            adding("apns-unique-id", request.answer.uniqueID) {
                if !reply.body.isEmpty { add("content-type", "application/json") }
                return reply.withFieldValues { retryAfter, explanation, channel in
                    if !retryAfter.isEmpty { add("retry-after", retryAfter, NGHTTP2_NV_FLAG_NONE) }
                    if !explanation.isEmpty { add("herald-explanation", explanation, NGHTTP2_NV_FLAG_NONE) }
                    if !channel.isEmpty { add("apns-channel-id", channel, NGHTTP2_NV_FLAG_NO_INDEX) }
                    guard !reply.body.isEmpty else {
                        return nghttp2_submit_response(library, request.stream.id, fields, count, nil)
                    }
                    var body = nghttp2_data_provider(
                        source: nghttp2_data_source(ptr: nil),
                        read_callback: HTTP2Callbacks.readReplyBody
                    )
                    return nghttp2_submit_response(library, request.stream.id, fields, count, &body)
                }
            }
        }
    }
}
