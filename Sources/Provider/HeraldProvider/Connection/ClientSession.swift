import CNghttp2
import NIOCore

/// One connection's HTTP/2, as a client, in the hands of libnghttp2: bytes in, ended calls out; calls in, bytes out.
///
/// It stays on one event loop, knows no clock and does no I/O. What the library calls back (ClientSession+Library) only
/// notes; whoever calls ``receive(_:)`` acts on it afterwards.
final class ClientSession {
    /// Why the session is over.
    enum End: Hashable {
        /// The peer does not speak HTTP/2, or breaks it.
        case failed(Int32)
        /// There is no memory.
        case noMemory
    }

    /// How a stream ended.
    enum StreamEnd: Hashable {
        case answered
        /// The service did not look at the request.
        case untouched
        /// The service may have acted on it; with the error code of the reset.
        case lost(UInt32)
    }

    /// Content of a GOAWAY frame.
    struct GoAway: Hashable {
        let lastStream: Int32
        let code: UInt32
        let words: [UInt8]
    }

    /// The longest header block of an answer, in bytes of names and values with 32 for each field (RFC 9113 §6.5.2).
    static let maximumHeaderBytes = 16_384
    /// The longest debug data of a GOAWAY that is kept, in bytes.
    static let maximumDebugBytes = 1024

    private var library: OpaquePointer?
    private let fields: UnsafeMutablePointer<nghttp2_nv>
    private static let fieldCapacity = 16

    // State of the callbacks. Every access would be checked otherwise, several times for each frame.
    @exclusivity(unchecked) var calls: [Int32: Call] = [:]
    @exclusivity(unchecked) var ended: [(call: Call, end: StreamEnd)] = []
    var receivedGoAway: GoAway?
    /// Whether the service's first SETTINGS have come.
    var hasSettings = false
    var end: End?
    /// The call whose answer's header block is being read.
    @exclusivity(unchecked) var block: Call?
    @exclusivity(unchecked) var blockBytes = 0

    /// - Throws: ``ProviderError`` if there is no memory for it.
    init() throws {
        fields = .allocate(capacity: Self.fieldCapacity)
        fields.initialize(repeating: nghttp2_nv(), count: Self.fieldCapacity)
        library = try makeLibrarySession()
        func entry(_ id: nghttp2_settings_id, _ value: Int) -> nghttp2_settings_entry {
            nghttp2_settings_entry(settings_id: Int32(id.rawValue), value: UInt32(truncatingIfNeeded: value))
        }
        let entries = [
            entry(NGHTTP2_SETTINGS_ENABLE_PUSH, 0),
            entry(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, Self.maximumHeaderBytes),
        ]
        guard nghttp2_submit_settings(library, 0, entries, entries.count) == 0 else { throw Self.noMemory }
    }

    deinit {
        nghttp2_session_del(library)
        fields.deallocate()
    }

    static let noMemory = ProviderError(.unreachable, "there is no memory for a connection")

    // Bytes in, ended calls out.

    /// Takes what came from the service; ``takeEnded()`` and the other notes tell what it was.
    func receive(_ bytes: UnsafeRawBufferPointer) {
        guard end == nil, let base = bytes.baseAddress, !bytes.isEmpty else { return }
        let result = nghttp2_session_mem_recv(library, base.assumingMemoryBound(to: UInt8.self), bytes.count)
        if result < 0 { fail(Int32(truncatingIfNeeded: result)) }
    }

    /// The calls whose streams ended since this was asked last.
    func takeEnded() -> [(call: Call, end: StreamEnd)] {
        guard !ended.isEmpty else { return [] }
        defer { ended.removeAll(keepingCapacity: true) }
        return ended
    }

    /// How many streams the service allows at once; without a word of it, no number is too high (RFC 9113 §6.5.2).
    var streamLimit: Int {
        Int(nghttp2_session_get_remote_settings(library, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS))
    }

    var openStreams: Int { calls.count }

    // Calls in, bytes out.

    /// Puts a call on a stream of its own.
    /// - Returns: Whether there is one: no further stream can be begun after a GOAWAY, or once all numbers are used up.
    func begin(_ call: Call) -> Bool {
        call.rewind()
        guard end == nil, receivedGoAway == nil, call.head.fields.count < Self.fieldCapacity else { return false }
        let stream = withFields(of: call) { count in
            guard !call.body.isEmpty else { return nghttp2_submit_request(library, nil, fields, count, nil, nil) }
            var body = nghttp2_data_provider(source: nghttp2_data_source(ptr: nil), read_callback: Self.readBody)
            return nghttp2_submit_request(library, nil, fields, count, &body, nil)
        }
        guard stream > 0 else { return false }
        call.progress.stream = stream
        calls[stream] = call
        return true
    }

    /// Fills in ``fields`` with the header of a call; valid in `body`, which receives their number.
    ///
    /// The library copies values and changes neither names nor values: its struct is only not const.
    private func withFields(of call: Call, _ body: (Int) -> Int32) -> Int32 {
        func field(_ name: StaticString, _ value: UnsafePointer<UInt8>?, _ count: Int, isIndexed: Bool) -> nghttp2_nv {
            nghttp2_nv(
                name: UnsafeMutablePointer(mutating: name.utf8Start),
                value: UnsafeMutablePointer(mutating: value),
                namelen: name.utf8CodeUnitCount,
                valuelen: count,
                flags: UInt8(
                    truncatingIfNeeded: NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue
                        | (isIndexed ? 0 : NGHTTP2_NV_FLAG_NO_INDEX.rawValue)
                )
            )
        }
        return call.head.values.withUnsafeBufferPointer { values in
            var count = 0
            for own in call.head.fields {
                let value = values.baseAddress.map { $0 + own.start }
                fields[count] = field(own.name, value, own.count, isIndexed: own.isIndexed)
                count += 1
            }
            guard var authorization = call.authorization else { return body(count) }
            return authorization.withUTF8 { value in
                fields[count] = field("authorization", value.baseAddress, value.count, isIndexed: true)
                return body(count + 1)
            }
        }
    }

    /// Resets the stream of a call that nobody waits for any more; it ends as lost.
    func cancel(_ call: Call) {
        guard calls[call.progress.stream] === call else { return }
        nghttp2_submit_rst_stream(library, 0, call.progress.stream, NGHTTP2_CANCEL.rawValue)
    }

    func ping() {
        nghttp2_submit_ping(library, 0, nil)
    }

    /// Sends GOAWAY.
    func goAway() {
        nghttp2_submit_goaway(library, 0, 0, NGHTTP2_NO_ERROR.rawValue, nil, 0)
    }

    /// Appends frames that wait to be sent, until there are none or `limit` bytes lie in the buffer.
    /// - Returns: Whether there may be more.
    func drain(into buffer: inout ByteBuffer, upTo limit: Int) -> Bool {
        while buffer.readableBytes < limit {
            var frame: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(library, &frame)
            guard count > 0, let frame else {
                if count < 0 { fail(Int32(truncatingIfNeeded: count)) }
                return false
            }
            buffer.writeBytes(UnsafeRawBufferPointer(start: frame, count: count))
        }
        return true
    }

    /// Takes all calls that are on a stream; they are nobody's then.
    func takeCalls() -> [Call] {
        defer { calls = [:] }
        return Array(calls.values)
    }

    private func fail(_ code: Int32) {
        if end == nil { end = code == NGHTTP2_ERR_NOMEM.rawValue ? .noMemory : .failed(code) }
    }
}
