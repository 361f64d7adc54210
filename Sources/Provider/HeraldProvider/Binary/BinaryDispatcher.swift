import CoreMetrics
import HeraldModel
import HeraldWire
import Logging
import NIOCore
import Synchronization

/// Assigns calls to a service of the binary interface: a bounded queue in front of one connection at a time.
///
/// ``BinaryHistory`` decides the outcome of what was written, ``ConnectPlan`` when to connect.
// Unchecked: timers and callbacks capture it; its mutable state is used only on `eventLoop`, which `take` asserts.
final class BinaryDispatcher: @unchecked Sendable {
    /// Interval between two timer checks.
    private static let tickInterval = TimeAmount.milliseconds(100)
    /// Maximum length of one write, in bytes.
    private static let writeBytes = 32_768

    let eventLoop: any EventLoop
    private let connector: Connector
    private let configuration: BinaryClientConfiguration
    private let metrics: ProviderMetrics
    private var logger: Logger? { configuration.logger }
    private var endpoint: String { connector.endpoint }

    private var queue: CallQueue<BinaryCall>
    private var history: BinaryHistory<BinaryCall>
    private var link: BinaryLink?
    private var isConnecting = false
    /// Time limit for the TLS handshake or for the answer to the checkpoint.
    private var overdue = NIODeadline.distantFuture
    /// Whether the service has answered a checkpoint, and no connection has failed since: it speaks the interface and
    /// accepts the certificate.
    private var isVerified = false
    private var plan: ConnectPlan
    private var lastError: ProviderError?
    private var nextTick: (at: NIODeadline, task: Scheduled<Void>)?
    private var onEnd: [CheckedContinuation<Void, Never>] = []

    init(connector: Connector, configuration: BinaryClientConfiguration, metrics: ProviderMetrics) {
        self.connector = connector
        self.configuration = configuration
        self.metrics = metrics
        eventLoop = connector.eventLoop
        queue = CallQueue(limit: configuration.maximumWaiting)
        history = BinaryHistory(limit: configuration.maximumUnconfirmed)
        var limits = ProviderConnectionLimits()
        limits.maximum = 1
        limits.firstPause = configuration.firstPause
        limits.longestPause = configuration.longestPause
        plan = ConnectPlan(limits: limits)
    }

    /// Takes what other threads handed over.
    func take(_ items: [CallInbox<BinaryCall>.Item]) {
        eventLoop.assertInEventLoop()
        for item in items {
            switch item {
            case .start(let call): queue.accept(call)
            // A written call stays in the history: its position decides about others.
            case .cancel(let call): queue.cancel(call)
            case .retire: break
            case .shutDown(let continuation):
                queue.close()
                if let continuation { onEnd.append(continuation) }
            }
        }
        pump()
    }

    private func pump() {
        let now = eventLoop.now
        if let link {
            if link.isOpen, !link.isClosed { write(to: link, now: now) }
        } else {
            connectIfWanted(now: now)
        }
        endIfOver()
        scheduleTick(now: now)
    }

    // MARK: - Writing

    private func write(to link: BinaryLink, now: NIODeadline) {
        guard history.checkpoint == nil else { return }
        guard isVerified else { return writeCheckpoint(to: link, now: now) }
        while link.isWritable, var buffer = link.makeBuffer(capacity: 4096) {
            while buffer.readableBytes < Self.writeBytes, let call = queue.first(),
                history.hasRoom(for: call.notification.identifier)
            {
                _ = queue.takeFirst()
                var notification = call.notification
                notification.identifier = history.write(call, notification.identifier, now: now)
                buffer.writeNotification(notification)
            }
            guard buffer.readableBytes > 0 else { break }
            link.write(buffer, upTo: history.count)
        }
        guard history.count > 0 else {
            // All senders have cancelled.
            guard queue.first() == nil else { return }
            forgetLink()
            return link.close(nil)
        }
        let isBlocked = queue.first().map { !history.hasRoom(for: $0.notification.identifier) } ?? queue.isClosed
        if isBlocked || history.checkpointDue(after: configuration.confirmAfter).map({ $0 <= now }) == true {
            writeCheckpoint(to: link, now: now)
        }
    }

    private func writeCheckpoint(to link: BinaryLink, now: NIODeadline) {
        guard var buffer = link.makeBuffer(capacity: 32) else { return }
        buffer.writeCheckpoint(history.writeCheckpoint())
        link.write(buffer, upTo: history.count)
        overdue = now + TimeAmount(configuration.timeout)
    }

    // MARK: - Connecting

    private func connectIfWanted(now: NIODeadline) {
        guard !isConnecting else { return }
        switch plan.step(isShort: !queue.isEmpty, usable: 0, opening: 0, now: now) {
        case .nothing: break
        case .wait(let moment): scheduleTick(at: moment, now: now)
        case .connect:
            if let moment = ConnectBudget.shared.withLock({ $0.take(now: now) }) {
                plan.postpone(until: moment)
                scheduleTick(at: moment, now: now)
            } else {
                connect()
            }
        }
    }

    private func connect() {
        isConnecting = true
        metrics.connections.increment()
        logger?.debug("connecting", metadata: ["host": "\(connector.host)", "port": "\(connector.target.port)"])
        connector.connect {
            BinaryLink(dispatcher: self)
        } done: { result in
            self.isConnecting = false
            switch result.map(\.value) {
            case .success(let link) where !link.isClosed:
                self.link = link
                self.overdue = self.eventLoop.now + TimeAmount(self.configuration.timeout)
                self.metrics.open.increment()
            case .success(let link): self.failed(link.failure ?? ChannelError.eof)
            case .failure(let error): self.failed(error)
            }
            self.pump()
        }
    }

    /// Handles a failed connect, or a connection that ended without a valid answer.
    private func failed(_ error: any Error) {
        let error = ProviderError(connecting: error, to: connector)
        isVerified = false
        lastError = error
        plan.failed(now: eventLoop.now, chance: .random(in: 0...1))
        metrics.failures.increment()
        logger?.warning("connection failed", metadata: ["error": "\(error.message)"])
        // Waiting does not help if one side does not trust the other, or the proxy makes no tunnel.
        let isPermanent = [.untrusted, .badCredential, .badAnswer, .badProxy].contains(error.code)
        if isPermanent || !configuration.waitsForService { queue.fail(error) { _ in true } }
    }

    // MARK: - Connection events

    func hasOpened(_ link: BinaryLink) {
        if link === self.link { pump() }
    }

    func hasRoom(_ link: BinaryLink) {
        if link === self.link { pump() }
    }

    /// Notes that the socket has the first `count` notifications of the connection.
    func hasFlushed(_ link: BinaryLink, _ count: Int) {
        if link === self.link { history.flushed(count) }
    }

    func hasAnswered(_ link: BinaryLink, _ response: BinaryErrorResponse) {
        guard link === self.link else { return }
        forgetLink()
        let isFirst = history.count == 0
        let settlement = history.end(.answered(response))
        settle(settlement, ProviderError.notNaming)
        if settlement.namesCheckpoint {
            isVerified = true
            plan.succeeded()
            lastError = nil
        } else if response.status == .shutdown {
            failed(ProviderError.stopping)
        } else if settlement.namesUnknown {
            failed(ProviderError.notNaming)
        } else if response.status == .processingError {
            // A failure of the service: back off before the next connect.
            plan.failed(now: eventLoop.now, chance: .random(in: 0...1))
        } else {
            plan.succeeded()
        }
        logger?.debug(
            "the service answered",
            metadata: [
                "status": "\(response.status.rawValue)", "accepted": "\(settlement.accepted.count)",
                "resend": "\(settlement.resend.count)", "first": "\(isFirst)",
            ]
        )
        pump()
    }

    func hasClosed(_ link: BinaryLink) {
        guard link === self.link else { return }
        forgetLink()
        let reason = link.failure ?? ChannelError.eof
        let error = ProviderError(connecting: reason, to: connector)
        settle(history.end(.lost), error)
        failed(reason)
        pump()
    }

    private func forgetLink() {
        if link != nil { metrics.open.decrement() }
        link = nil
        overdue = .distantFuture
    }

    /// Ends the calls with a known outcome, and requeues the others.
    private func settle(_ settlement: BinaryHistory<BinaryCall>.Settlement, _ error: ProviderError) {
        for call in settlement.accepted { call.end(.answered(.accepted)) }
        if let (call, status) = settlement.refused { call.end(.answered(.refused(BinaryRefusal(status)))) }
        let doubt = ProviderError(error.code, error.message, mayHaveArrived: true)
        for call in settlement.uncertain { call.end(.answered(.uncertain(doubt))) }
        for call in settlement.resend.reversed() where call.stage == .sent {
            metrics.moves.increment()
            queue.putBack(call)
        }
    }

    // MARK: - Timers

    private func tick() {
        let now = eventLoop.now
        let standstill = Standstill(due: nextTick?.at ?? now, now: now, tolerance: Self.tickInterval)
        nextTick = nil
        if let standstill {
            overdue = standstill.postponed(overdue, now: now, limit: TimeAmount(configuration.timeout))
        }
        expire(now: now, isAfterStandstill: standstill != nil)
        if overdue <= now, let link {
            metrics.timeouts.increment()
            let question =
                link.isOpen ? "does not answer the checkpoint in time" : "does not finish the TLS handshake in time"
            link.close(ProviderError(.timedOut, "\(endpoint) \(question)"))
        }
        pump()
    }

    /// Ends calls whose time is over; those that wait for a confirmation only once there was time to read it.
    private func expire(now: NIODeadline, isAfterStandstill: Bool) {
        let late = ProviderError(.timedOut, "\(endpoint) accepts no further notification in time")
        queue.fail(link == nil ? lastError ?? late : late) { $0.deadline <= now }
        guard !isAfterStandstill else { return }
        let doubt = ProviderError(.timedOut, "\(endpoint) did not confirm it in time", mayHaveArrived: true)
        for call in history.items where call.deadline <= now { call.end(.answered(.uncertain(doubt))) }
    }

    private func scheduleTick(now: NIODeadline) {
        guard !queue.isEmpty || link != nil else { return }
        let due = history.checkpointDue(after: configuration.confirmAfter) ?? .distantFuture
        scheduleTick(at: min(now + Self.tickInterval, max(due, now)), now: now)
    }

    private func scheduleTick(at moment: NIODeadline, now: NIODeadline) {
        if let nextTick {
            guard moment < nextTick.at else { return }
            nextTick.task.cancel()
        }
        let moment = max(moment, now + .milliseconds(1))
        nextTick = (moment, eventLoop.scheduleTask(deadline: moment) { self.tick() })
    }

    private func endIfOver() {
        guard queue.isClosed, queue.isEmpty, history.count == 0, !isConnecting else { return }
        if let link {
            forgetLink()
            _ = history.end(.lost)
            link.close(nil)
        }
        nextTick?.task.cancel()
        nextTick = nil
        for continuation in onEnd { continuation.resume() }
        onEnd = []
    }
}
