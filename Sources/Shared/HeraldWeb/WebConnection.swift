import HeraldModel
import NIOCore
import NIOHTTP1
import Synchronization

/// The connections that share the places of one listener.
final class WebConnections: Sendable {
    private let places: Mutex<WebPlaces<any Channel>>

    init(descriptors: Int) {
        places = Mutex(WebPlaces(descriptors: descriptors))
    }

    var isFull: Bool { places.withLock(\.isFull) }

    /// Admits a connection, on its event loop, and closes the one that makes way.
    /// - Returns: nil if there is no place: it must be closed.
    fileprivate func accept(_ channel: any Channel) -> UInt64? {
        let network = channel.remoteAddress?.ipAddress.flatMap(NumericAddress.init)?.network ?? []
        let now = channel.eventLoop.now
        guard let accepted = places.withLock({ $0.accept(channel, from: network, at: now) }) else { return nil }
        let number = accepted.number
        channel.closeFuture.whenComplete { _ in self.places.withLock { $0.closed(number) } }
        if let evicted = accepted.evicted { evicted.eventLoop.execute { evicted.closeTransport() } }
        return number
    }

    fileprivate func enter(_ phase: WebPlaces<any Channel>.Phase, _ number: UInt64) {
        places.withLock { $0.enter(phase, number) }
    }

    fileprivate func mayServe(_ number: UInt64) -> Bool { places.withLock { $0.mayServe(number) } }
}

/// One connection among the ``WebConnections`` of a listener: its place, and the time that its client may take.
///
/// 1. A client has some time for a request's header, and again for its body, however it spreads the bytes. The idle timeout
///    alone would let a byte every few seconds hold a connection for ever. While the service owes an answer, it may read
///    nothing more, so the time of the next header or body begins only after that answer.
/// 2. A client that takes nothing of its answer for that time is closed.
/// 3. While all places are taken, each answer is the last of its connection, and the kept ones answer health and metrics.
///    An answer is also the last if it comes before the end of its request, and after a request to change the protocol,
///    which is answered in HTTP/1.1 (RFC 9110 §7.8): NIO's parser stops there.
/// 4. A client that has closed its side is given up a second later if it still waits for an answer, and so is one that is
///    waited for when the listener stops.
final class WebConnection: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// The interval of looks for progress, and the time that a client gets which has gone, or at the end.
    private static let look = TimeAmount.seconds(1)
    /// Unanswered requests with which nothing more is read; a client that waits for each answer has one.
    private static let pipelined = 2

    /// Time for a header, for a body, and without progress of an answer.
    private let patience: TimeAmount
    private let connections: WebConnections
    /// Event loop that measures the time; nil for the connection's own.
    private let clock: (any EventLoop)?
    private var number: UInt64 = 0
    private var isReadingBody = false
    /// Requests whose header has arrived and whose answer is not complete.
    private var unanswered = 0
    private var isReadHeld = false
    /// Whether the request that was read last is the last one.
    private var isLastRequest = false
    private var isStopping = false
    private var timer: Scheduled<Void>?
    /// Looks for progress of the answer; nil while the system has all of it.
    private var unread: (bytes: Int, since: NIODeadline, look: Scheduled<Void>)?
    /// Whether the answer that is being written is the last one.
    private var isLast = false
    /// Whether the last answer is written: nothing more is read or written.
    private var isOver = false
    /// Whether the system has the last answer.
    private var isWritten = false

    init(patience: TimeAmount, connections: WebConnections, clock: (any EventLoop)? = nil) {
        self.patience = patience
        self.connections = connections
        self.clock = clock
    }

    func handlerAdded(context: ChannelHandlerContext) {
        guard let number = connections.accept(context.channel) else {
            // Closes after the setup, for which the acceptor waits.
            let channel = context.channel
            return context.eventLoop.execute { channel.closeTransport() }
        }
        self.number = number
        expectClient(context)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
        unread?.look.cancel()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        guard !isOver else {
            if case .end = part {
                isReadingBody = false
                if isWritten { context.close(promise: nil) }
            }
            return
        }
        switch part {
        case .head(let head):
            guard !isLastRequest else { return }
            isLastRequest = head.method == .CONNECT || head.headers.contains(name: "upgrade")
            isReadingBody = true
            unanswered += 1
            // An earlier request may still wait for its answer: then the client is not what is slow.
            if unanswered == 1 { expectClient(context) }
            guard head.headers["host"].count <= 1 else { return refuse(context, .badRequest, Self.hosts) }
            guard Self.isKept(head.uri) || connections.mayServe(number) else {
                return refuse(context, .serviceUnavailable, Self.isTaken)
            }
        case .body:
            break
        case .end:
            isReadingBody = false
            if unanswered == 0 { expectClient(context) } else { timer?.cancel() }
            if unanswered > 0, unread == nil { connections.enter(.answering, number) }
        }
        context.fireChannelRead(data)
    }

    func read(context: ChannelHandlerContext) {
        isReadHeld = unanswered >= Self.pipelined
        if !isReadHeld { context.read() }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard !isOver else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        switch unwrapOutboundIn(data) {
        case .head(var head) where head.status.code >= 200 && (connections.isFull || unanswered == 1 && isUnfinished):
            isLast = true
            head.headers.replaceOrAdd(name: "connection", value: "close")
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .end:
            noteAnswer(context)
            let promise = isLast ? promise ?? context.eventLoop.makePromise() : promise
            if isLast { end(context, after: promise) }
            context.write(data, promise: promise)
        default:
            context.write(data, promise: promise)
        }
    }

    private var isUnfinished: Bool { isReadingBody || isLastRequest }

    private func end(_ context: ChannelHandlerContext, after promise: EventLoopPromise<Void>?) {
        isOver = true
        let loop = context.eventLoop
        let bound = NIOLoopBound((self, context), eventLoop: loop)
        promise?.futureResult.whenComplete { _ in
            let (connection, context) = bound.value
            connection.isWritten = true
            guard connection.isReadingBody else { return context.close(promise: nil) }
            // A client that still sends would be reset, and might never see the answer.
            connection.afterLook(context) { $1.close(promise: nil) }
        }
    }

    func flush(context: ChannelHandlerContext) {
        context.flush()
        guard unread == nil, let bytes = context.waitingBytes, bytes > 0 else { return }
        let now = (clock ?? context.eventLoop).now
        connections.enter(.unread(now), number)
        unread = (bytes, now, look(context))
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case ChannelEvent.inputClosed where unanswered > 0:
            afterLook(context) { connection, context in
                if connection.unanswered > 0, connection.unread == nil { context.channel.closeTransport() }
            }
        case is ChannelShouldQuiesceEvent:
            isStopping = true
            afterLook(context) { connection, context in
                if connection.isReadingBody || connection.unanswered == 0 { context.channel.closeTransport() }
            }
        default:
            break
        }
        context.fireUserInboundEventTriggered(event)
    }

    // MARK: - Time

    private func afterLook(
        _ context: ChannelHandlerContext,
        _ act: @escaping @Sendable (WebConnection, ChannelHandlerContext) -> Void
    ) {
        let loop = context.eventLoop
        let bound = NIOLoopBound((self, context), eventLoop: loop)
        (clock ?? loop).scheduleTask(in: Self.look) {
            loop.execute {
                let (connection, context) = bound.value
                if context.channel.isActive { act(connection, context) }
            }
        }
    }

    private func noteAnswer(_ context: ChannelHandlerContext) {
        unanswered = max(0, unanswered - 1)
        if isReadHeld { read(context: context) }
        switch (unanswered, isReadingBody) {
        case (0, false): expectClient(context)
        // The request that is being read is the next to be answered.
        case (1, true): expectClient(context)
        // An answer may come before the end of its request, whose time goes on.
        default: break
        }
    }

    private func expectClient(_ context: ChannelHandlerContext) {
        let channel = context.channel
        timer?.cancel()
        timer = (clock ?? context.eventLoop).scheduleTask(in: patience) { channel.close(promise: nil) }
        if unanswered == 0, unread == nil { connections.enter(.asking(context.eventLoop.now), number) }
    }

    // MARK: - Answers that are not taken

    private func look(_ context: ChannelHandlerContext) -> Scheduled<Void> {
        let loop = context.eventLoop
        let bound = NIOLoopBound((self, context), eventLoop: loop)
        return (clock ?? loop).scheduleTask(in: Self.look) {
            loop.execute { bound.value.0.lookAtProgress(bound.value.1) }
        }
    }

    private func lookAtProgress(_ context: ChannelHandlerContext) {
        guard let before = unread, context.channel.isActive else { return }
        let bytes = context.waitingBytes ?? 0
        let now = (clock ?? context.eventLoop).now
        if bytes == 0 {
            unread = nil
            connections.enter(unanswered == 0 ? .asking(context.eventLoop.now) : .answering, number)
        } else if bytes == before.bytes, now - before.since >= (isStopping ? Self.look : patience) {
            context.channel.closeTransport()
        } else {
            // Fewer bytes are progress, and so are more: the service writes on only when some were taken.
            unread = (bytes, bytes == before.bytes ? before.since : now, look(context))
        }
    }

    // MARK: - Kept places

    private static func isKept(_ uri: String) -> Bool {
        let path = uri.prefix { $0 != "?" }
        return path == "/metrics" || path == "/health" || path.hasPrefix("/health/")
    }

    private static let hosts = "a request has one field Host (RFC 9112 §3.2)"
    private static let isTaken = "all places of this listener are taken: try again"

    private func refuse(_ context: ChannelHandlerContext, _ status: HTTPResponseStatus, _ words: String) {
        let text = #"{"error":"\#(words)"}"# + "\n"
        var headers: HTTPHeaders = [
            "content-type": "application/json", "content-length": "\(text.utf8.count)", "connection": "close",
        ]
        if status == .serviceUnavailable { headers.add(name: "retry-after", value: "1") }
        let head = HTTPResponseHead(version: .http1_1, status: status, headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: text)))), promise: nil)
        let promise = context.eventLoop.makePromise(of: Void.self)
        end(context, after: promise)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: promise)
    }
}
