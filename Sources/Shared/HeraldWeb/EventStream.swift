import HTTPTypes
package import Hummingbird
import HummingbirdCore
package import NIOCore
import ServiceLifecycle
import Synchronization

/// One server-sent event (HTML standard, §9.2).
package struct ServerEvent: Sendable {
    package let name: String
    /// Text without line breaks, which would end the field; JSON of ``WebReply/encode(_:)`` has none.
    package let data: [UInt8]
    /// The place to which a client returns with `Last-Event-ID`.
    package let id: String?

    package init(_ name: String, data: [UInt8], id: String? = nil) {
        self.name = name
        self.data = data
        self.id = id
    }

    func write(to buffer: inout ByteBuffer) {
        if let id { buffer.writeString("id: \(id)\n") }
        buffer.writeString("event: \(name)\ndata: ")
        buffer.writeBytes(data)
        buffer.writeString("\n\n")
    }
}

/// An answer that goes on with server-sent events until the client leaves or the service stops.
///
/// The source keeps what is new and signals it; a slow client takes it when it comes to it.
package struct EventStream: Sendable {
    /// Tells a stream that there is something to take; several signals may become one.
    package struct Signal: Sendable {
        fileprivate let continuation: AsyncStream<Void>.Continuation

        package func callAsFunction() { continuation.yield() }
    }

    /// Whether to write a comment.
    private final class Comment: Sendable {
        let isDue: Atomic<Bool>

        init(isDue: Bool) { self.isDue = Atomic(isDue) }
    }

    private let keepAlive: Duration
    private let clock: any Clock<Duration>
    private let greets: Bool
    private let watch: @Sendable (Signal) async -> Void
    private let take: @Sendable () throws -> [ServerEvent]
    private let end: @Sendable () -> Void

    /// - Parameters:
    ///   - keepAlive: Interval of comments, so that neither side takes the connection for dead.
    ///   - clock: Measures that interval.
    ///   - greets: Whether a comment shows at once that the stream is open.
    ///   - watch: Signals new events until it is cancelled; the stream ends when it returns.
    ///   - take: Takes the new events; none if there are none.
    ///   - end: Called once, when the stream has ended.
    package init(
        keepAlive: Duration,
        clock: any Clock<Duration>,
        greets: Bool = false,
        watch: @escaping @Sendable (Signal) async -> Void,
        take: @escaping @Sendable () throws -> [ServerEvent],
        end: @escaping @Sendable () -> Void = {}
    ) {
        self.keepAlive = keepAlive
        self.clock = clock
        self.greets = greets
        self.watch = watch
        self.take = take
        self.end = end
    }

    package var response: Response {
        var headers: HTTPFields = [.contentType: "text/event-stream", .cacheControl: "no-store"]
        // A proxy that collects answers would keep the events: this is how nginx is told.
        if let buffering = HTTPField.Name("x-accel-buffering") { headers[buffering] = "no" }
        return Response(
            status: .ok,
            headers: headers,
            body: ResponseBody { writer in
                defer { end() }
                let (signals, continuation) = AsyncStream.makeStream(
                    of: Void.self,
                    bufferingPolicy: .bufferingNewest(1)
                )
                let comment = Comment(isDue: greets)
                try await withGracefulShutdownHandler {
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        group.addTask {
                            await watch(Signal(continuation: continuation))
                            continuation.finish()
                        }
                        group.addTask {
                            while true {
                                try await clock.sleep(for: keepAlive)
                                comment.isDue.store(true, ordering: .relaxed)
                                continuation.yield()
                            }
                        }
                        defer { group.cancelAll() }
                        if greets { continuation.yield() }
                        for await _ in signals {
                            let bytes = EventStream.bytes(
                                try take(),
                                isCommentDue: comment.isDue.exchange(false, ordering: .relaxed)
                            )
                            if bytes.readableBytes > 0 { try await writer.write(bytes) }
                        }
                    }
                } onGracefulShutdown: {
                    continuation.finish()
                }
                try await writer.finish(nil)
            }
        )
    }

    /// The events, or a comment if it is due and there are none.
    package static func bytes(_ events: [ServerEvent], isCommentDue: Bool) -> ByteBuffer {
        var buffer = ByteBuffer()
        for event in events { event.write(to: &buffer) }
        if events.isEmpty, isCommentDue { buffer.writeString(": still here\n\n") }
        return buffer
    }
}
