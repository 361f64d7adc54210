/// The limits of one HTTP/2 session.
///
/// Each is there because a peer can otherwise make us hold or do something without end.
package struct HTTP2Limits: Sendable {
    /// Streams that may be open at one time, and what is advertised to a connection that has shown who it is.
    ///
    /// 1,000, as APNs since 2021; some clients assume it before they have read our SETTINGS.
    package var concurrentStreams = 1000
    /// Requests that a connection may have in hand: open streams, and work of streams that the client has reset (it
    /// goes on until the store answers; CVE-2023-44487).
    ///
    /// Twice the streams.
    package var requestsInHand = 2000
    /// Bytes of all fields of one block, each counted with 32 more (RFC 9113 §6.5.2), whether they mean anything here
    /// or not.
    ///
    /// Past it the connection is closed at once: a block of references into the HPACK table costs the client one byte a
    /// field.
    package var headerBlockBytes = 16 * 1024
    /// What SETTINGS_MAX_HEADER_LIST_SIZE says.
    ///
    /// 8,000, as APNs; advice to the client, not enforced.
    package var advertisedHeaderListBytes = 8000
    /// CONTINUATION frames in one block; a request fits one HEADERS frame twenty times over.
    package var continuations = 4
    /// SETTINGS and PING acknowledgements that wait for a client that does not read.
    package var unsentAcknowledgements = 100
    /// Bytes of a body that are kept: the longest payload, and one to see that there are more.
    package var bodyBytes = 5121
    /// Bytes of a body that are read at all.
    ///
    /// What is between is read and dropped, so that the client gets its 413 on a stream in good order; at this many the
    /// answer goes out and the stream is reset. It is the stream's window, which is never widened.
    package var drainedBodyBytes = 65_535
    /// The connection's receive window, in bytes: 1,000 streams with the longest payload, three times over.
    package var connectionWindowBytes = 16 * 1024 * 1024
    /// Frames that are not requests, at once: PING, SETTINGS, PRIORITY, WINDOW_UPDATE, unknown kinds, empty DATA, header
    /// blocks that lead nowhere.
    package var controlFrames = 1000
    /// Such frames each second after that; a client that pings each second uses one of them.
    package var controlFramesPerSecond = 100
    /// Such frames that each request pays for (window updates, mostly).
    package var controlFramesPerRequest = 4
    /// Stream resets that the client sends, at once, and each second after that (CVE-2023-44487).
    package var resetsReceived = 1000
    package var resetsReceivedPerSecond = 100
    /// Stream resets that the client makes us send, at once, and each second after that (CVE-2025-8671).
    package var resetsSent = 200
    package var resetsSentPerSecond = 20
    /// From the head of a request to its end.
    package var bodyTimeout: Duration = .seconds(10)
    /// From the answer to its last byte being taken, and to the end of a request answered before its end.
    package var replyTimeout: Duration = .seconds(30)
    /// From the first byte of a header block to its last.
    package var headerBlockTimeout: Duration = .seconds(10)

    package init() {}
}
