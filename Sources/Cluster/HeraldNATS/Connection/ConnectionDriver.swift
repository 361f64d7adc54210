import Foundation
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// State that callers on any thread and the loop share.
final class SharedOutbox: Sendable {
    let state: Mutex<Outbox>

    init(_ outbox: sending Outbox) {
        state = Mutex(outbox)
    }
}

/// Keeps a connection up: chooses servers, connects, writes, and passes on what comes.
///
/// It stays on its event loop.
final class ConnectionDriver {
    /// The search for a server that works.
    private struct Search {
        /// Whether a useless server was left, and no working one was found since.
        var isOn = false
        /// Whether the servers are tried for the first time since then.
        var isHurried = false
        /// The reasons of failures since the last connection, which the log has.
        var toldReasons: Set<String> = []
    }

    private let configuration: NATSConfiguration
    private let eventLoop: any EventLoop
    private let logger: Logger
    /// Reasons in the log, at most: some hold numbers that change.
    private static let toldReasons = 32
    private let shared: SharedOutbox
    private let onEvent: @Sendable (NATSConnection.Event) -> Void
    private var tls: NIOSSLContext?
    private var pool: ServerPool
    private var link: ServerLink?
    private var pause: Scheduled<Void>?
    private var tick: Scheduled<Void>?
    private var leaveBy: NIODeadline?
    private var isStarted = false
    private var isClosed = false
    private var search = Search()

    /// Duration after which a connection counts as one that lasts.
    private static let stableAfter: TimeAmount = .seconds(2)

    init(
        _ configuration: NATSConfiguration,
        tls: NIOSSLContext?,
        shared: SharedOutbox,
        eventLoop: any EventLoop,
        logger: Logger,
        onEvent: @escaping @Sendable (NATSConnection.Event) -> Void
    ) {
        self.configuration = configuration
        self.tls = tls
        self.shared = shared
        self.eventLoop = eventLoop
        self.logger = logger
        self.onEvent = onEvent
        pool = ServerPool(configuration.servers, limits: configuration.limits)
    }

    // MARK: - Connecting

    func start() {
        guard !isStarted, !isClosed else { return }
        isStarted = true
        connectNext()
    }

    private func connectNext() {
        guard !isClosed, link == nil, pause == nil else { return }
        switch pool.next(random: { Double.random(in: 0..<1) }) {
        case .connect(let server): connect(to: server)
        case .pause(let time):
            search.isHurried = false
            pause = eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(time)) { [self] in
                pause = nil
                connectNext()
            }
        }
    }

    private func connect(to server: ServerPool.Server) {
        var limits = configuration.limits
        if search.isHurried { limits.connectTimeout = min(limits.connectTimeout, limits.hurriedConnectTimeout) }
        let isTLSFirst = configuration.tls?.isFirst == true
        let handshake = Handshake(
            name: configuration.name,
            credential: configuration.credential,
            demandsTLS: configuration.tls != nil || server.address.requiresTLS,
            isTLSFirst: isTLSFirst
        )
        let link = ServerLink(server, handshake: handshake, limits: limits, owner: self) {
            [weak self] () throws(NATSError) in
            guard let self else { throw .closed }
            return try ClientTLS.handler(try tlsContext(), name: tlsName(server))
        }
        self.link = link
        let bound = NIOLoopBound((self, link), eventLoop: eventLoop)
        ClientBootstrap(group: eventLoop)
            .connectTimeout(TimeAmount(limits.connectTimeout))
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelOption(.autoRead, value: false)
            .connect(host: server.address.host, port: server.address.port)
            .whenComplete { result in
                let (driver, link) = bound.value
                driver.connected(result, link, isTLSFirst: isTLSFirst)
            }
    }

    /// The reason in the system's words, without the names of types.
    private static func reason(_ error: any Error) -> String {
        guard let error = error as? NIOConnectionError else { return "\(error)" }
        let reasons = error.connectionErrors.map { failure in
            (failure.error as? IOError).map { String(cString: strerror($0.errnoCode)) } ?? "\(failure.error)"
        }
        return reasons.first ?? "its name cannot be resolved"
    }

    /// TCP is connected, or has failed.
    private func connected(_ result: Result<any Channel, any Error>, _ link: ServerLink, isTLSFirst: Bool) {
        switch result {
        case .failure(ChannelError.connectTimeout):
            link.end(NATSError(.timeout, "\(link.server.address) did not accept the connection in time"))
        case .failure(let error):
            link.end(NATSError(.connectionLost, "\(link.server.address) cannot be reached: \(Self.reason(error))"))
        case .success(let channel):
            guard self.link === link else { return channel.close(promise: nil) }
            do {
                let pipeline = channel.pipeline.syncOperations
                if isTLSFirst {
                    try pipeline.addHandler(try ClientTLS.handler(try tlsContext(), name: tlsName(link.server)))
                }
                try pipeline.addHandler(link)
                // Only now, so that nothing is read that nobody handles.
                try channel.syncOptions?.setOption(.autoRead, value: true)
            } catch {
                link.end(error as? NATSError ?? NATSError(.connectionLost, "the connection failed: \(error)"))
                channel.close(promise: nil)
            }
        }
    }

    private func tlsName(_ server: ServerPool.Server) -> String {
        configuration.tls?.serverName ?? server.tlsName ?? server.address.host
    }

    private func tlsContext() throws(NATSError) -> NIOSSLContext {
        if let tls { return tls }
        let context = try ClientTLS.context(configuration.tls ?? NATSTLS())
        tls = context
        return context
    }

    // MARK: - Events of the link

    func linkIsReady(_ link: ServerLink, _ info: NATSServerInfo) {
        pool.connected(to: link.server)
        shared.state.withLock { $0.connect(info) }
        if !search.isOn { search.toldReasons = [] }
        logger.log(
            level: search.isOn ? .debug : .info,
            "connected to NATS",
            metadata: ["server": "\(link.server.address)", "version": "\(info.version)"]
        )
        self.link(link, received: info)
        flush()
        onEvent(.connected(info))
    }

    func link(_ link: ServerLink, received info: NATSServerInfo) {
        if !info.announcedServers.isEmpty { pool.announce(info.announcedServers, by: link.server) }
        shared.state.withLock { $0.update(info) }
        if info.isLameDuck, leaveBy == nil { leave() }
    }

    func link(_ link: ServerLink, wasRefused error: NATSError) {
        logger.error("NATS refuses a subject: grant it to this user", metadata: ["reason": "\(error)"])
    }

    func linkReceived(answers: [NATSMessage]) {
        let found = shared.state.withLock { outbox in
            outbox.statistics.messagesReceived += UInt64(answers.count)
            return outbox.requests(for: answers)
        }
        for (answer, request) in zip(answers, found) {
            guard let request else { continue }
            if request.request.answer(answer), case .gather = request.request {
                shared.state.withLock { $0.remove(request.token) }
            }
        }
    }

    func linkReceived(message: NATSMessage) {
        let subscriber = shared.state.withLock { outbox in
            outbox.statistics.messagesReceived += 1
            return outbox.subscriber(message.subscription)
        }
        subscriber?.onMessage(message)
    }

    func linkHasEnded(_ link: ServerLink, _ error: NATSError) {
        guard self.link === link else { return }
        self.link = nil
        leaveBy = nil
        let wasStable = link.readySince.map { NIODeadline.now() - $0 >= Self.stableAfter } ?? false
        pool.disconnected(wasStable: wasStable)
        let ended = shared.state.withLock { $0.disconnect(isClosed ? .closed : error) }
        for each in ended { each.report() }
        flush()
        guard !isClosed else { return }
        // Each round of attempts has the same reasons: a line for each of them until a connection stands.
        if search.toldReasons.count < Self.toldReasons, search.toldReasons.insert(error.reason).inserted {
            logger.warning("no connection to NATS", metadata: ["reason": "\(error)"])
        }
        onEvent(.disconnected(error))
        // Not at once: who is called here may be in the midst of something.
        eventLoop.assumeIsolated().execute { self.connectNext() }
    }

    // MARK: - Leaving a server

    /// The server shuts down: its answers are awaited, then another server is tried.
    private func leave() {
        logger.notice("the NATS server is shutting down")
        onEvent(.lameDuck)
        guard pool.count > 1 else { return }
        leaveBy = .now() + TimeAmount(configuration.limits.lameDuckWait)
        shared.state.withLock { $0.leave() }
        scheduleTick()
    }

    /// Leaves a server that is of no use.
    func leave(_ reason: String) {
        guard let link, link.readySince != nil, pool.count > 1 else { return }
        search.isOn = true
        search.isHurried = true
        link.end(NATSError(.connectionLost, "\(link.server.address) \(reason)"))
    }

    /// The present server works.
    func settle() {
        guard search.isOn, let link else { return }
        search.isOn = false
        search.isHurried = false
        search.toldReasons = []
        logger.notice("another NATS server is used", metadata: ["server": "\(link.server.address)"])
    }

    private func leaveIfDone() {
        guard let leaveBy, let link else { return }
        let isDone = shared.state.withLock { $0.isDrained }
        guard isDone || NIODeadline.now() >= leaveBy else { return }
        link.end(NATSError(.connectionLost, "\(link.server.address) is shutting down"))
    }

    // MARK: - Writing

    /// Writes what has gathered, and reports what was refused.
    func flush() {
        let (write, refused, awaits) = shared.state.withLock { outbox in
            (outbox.takeWrite(), outbox.takeRefused(), outbox.requests.count > 0)
        }
        if awaits { scheduleTick() }
        if let write { send(write) }
        for each in refused { each.report() }
    }

    private func send(_ write: ByteBuffer) {
        guard let link else { return }
        let promise = eventLoop.makePromise(of: Void.self)
        link.write(write, promise: promise)
        promise.futureResult.assumeIsolated().whenSuccess { [self] in
            guard self.link === link else { return }
            shared.state.withLock { $0.wrote(write) }
            flush()
        }
    }

    /// Looks at the deadlines as long as requests wait.
    private func scheduleTick() {
        guard tick == nil else { return }
        let time = TimeAmount.nanoseconds(Int64(OpenRequests<Request>.tick))
        tick = eventLoop.assumeIsolated().scheduleTask(in: time) { [self] in
            tick = nil
            let (expired, awaits) = shared.state.withLock { outbox in
                (outbox.expire(at: NIODeadline.now().uptimeNanoseconds), outbox.requests.count > 0)
            }
            for each in expired { each.report() }
            leaveIfDone()
            if awaits || leaveBy != nil { scheduleTick() }
        }
    }

    // MARK: - Closing

    func close() {
        guard !isClosed else { return }
        isClosed = true
        pause?.cancel()
        pause = nil
        if let link {
            flush()
            link.end(.closed)
        } else {
            _ = shared.state.withLock { $0.disconnect(.closed) }
        }
    }
}
