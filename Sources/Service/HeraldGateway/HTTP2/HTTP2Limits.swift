/// The limits of one HTTP/2 session; each bounds memory or work that a peer can cause.
package struct HTTP2Limits: Sendable {
    /// Maximum open streams, advertised to authenticated connections.
    ///
    /// 1,000, as APNs since 2021; some clients assume it before they read the SETTINGS.
    package var concurrentStreams = 1000
    /// Maximum pending requests: open streams, and requests that the client has reset but the store still processes
    /// (CVE-2023-44487).
    ///
    /// Twice the streams.
    package var requestsInHand = 2000
    /// Maximum bytes of a header block, with 32 more per field (RFC 9113 §6.5.2), unknown fields included.
    ///
    /// Beyond it Herald closes the connection: a reference into the HPACK table costs the client one byte per field.
    package var headerBlockBytes = 16 * 1024
    /// Value of SETTINGS_MAX_HEADER_LIST_SIZE.
    ///
    /// 8,000, as APNs; advice to the client, not enforced.
    package var advertisedHeaderListBytes = 8000
    /// Maximum CONTINUATION frames per block; a request fits one HEADERS frame twenty times over.
    package var continuations = 4
    /// Maximum unsent SETTINGS and PING acknowledgements, for a client that does not read.
    package var unsentAcknowledgements = 100
    /// Bytes of a body that are kept: the longest payload plus one, to detect a longer one.
    package var bodyBytes = 5121
    /// Bytes of a body that are read, which is the stream's window.
    ///
    /// Herald drops bytes beyond ``bodyBytes``, so that the client gets its 413 on an intact stream. At this many it
    /// answers and resets the stream.
    package var drainedBodyBytes = 65_535
    /// The connection's receive window, in bytes: 1,000 streams with the longest payload, three times over.
    package var connectionWindowBytes = 16 * 1024 * 1024
    /// Burst of frames that are not requests: PING, SETTINGS, PRIORITY, WINDOW_UPDATE, unknown types, empty DATA, header
    /// blocks without a request.
    package var controlFrames = 1000
    /// Control frames per second after that.
    package var controlFramesPerSecond = 100
    /// Control frames that each request allows (mostly window updates).
    package var controlFramesPerRequest = 4
    /// Stream resets that the client sends: burst, and per second after that (CVE-2023-44487).
    package var resetsReceived = 1000
    package var resetsReceivedPerSecond = 100
    /// Stream resets that the client provokes: burst, and per second after that (CVE-2025-8671).
    package var resetsSent = 200
    package var resetsSentPerSecond = 20
    /// From the header of a request to its end.
    package var bodyTimeout: Duration = .seconds(10)
    /// From the answer until the client has read it and ended its request.
    package var replyTimeout: Duration = .seconds(30)
    /// From the first byte of a header block to its last.
    package var headerBlockTimeout: Duration = .seconds(10)
    /// From the first byte that a client sends after the service's SETTINGS to its acknowledgement (RFC 9113 §6.5.3).
    ///
    /// 30 s: a client that writes a long burst before it reads.
    package var settingsTimeout: Duration = .seconds(30)
    /// From the first GOAWAY of a graceful end to the second, for a client that does not answer the PING between them.
    package var goAwayTimeout: Duration = .seconds(5)
}
