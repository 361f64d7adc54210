import CoreMetrics
import HeraldModel
import Logging
import NIOCore
import Synchronization

/// Assigns calls to connections: a bounded queue in front of a few connections, all on one event loop.
///
/// ``LinkState`` decides about each connection, ``ConnectPlan`` about their number. The dispatcher performs it.
// Unchecked: timers and callbacks capture it; its mutable state is used only on `eventLoop`, which `take` asserts.
final class Dispatcher: @unchecked Sendable {
    /// Interval between two timer checks while calls are queued or in flight.
    private static let tickInterval = TimeAmount.milliseconds(100)
    /// How often connections may refuse the stream of a call before the call fails.
    private static let maximumRefusals = 3

    let eventLoop: any EventLoop
    private let connector: Connector
    private let limits: ProviderConnectionLimits
    private let timeout: Duration
    private let logger: Logger?
    private let metrics: ProviderMetrics

    private var queue: CallQueue<Call>
    private var links: [ProviderLink] = []
    private var connecting = 0
    private var plan: ConnectPlan
    private var linkNumber = 0
    private var lastError: ProviderError?
    private var nextTick: (at: NIODeadline, task: Scheduled<Void>)?
    private var onEnd: [CheckedContinuation<Void, Never>] = []

    init(connector: Connector, configuration: ProviderConfiguration, metrics: ProviderMetrics) {
        self.connector = connector
        eventLoop = connector.eventLoop
        limits = configuration.connections
        timeout = configuration.timeout
        queue = CallQueue(limit: configuration.maximumWaiting)
        logger = configuration.logger
        self.metrics = metrics
        plan = ConnectPlan(limits: configuration.connections)
    }

    /// Takes what other threads handed over.
    func take(_ items: [CallInbox<Call>.Item]) {
        eventLoop.assertInEventLoop()
        for item in items {
            switch item {
            case .start(let call): queue.accept(call)
            case .cancel(let call): cancel(call)
            case .retire(let number): links.first { $0.number == number }?.state.drain()
            case .shutDown(let continuation):
                queue.close()
                if let continuation { onEnd.append(continuation) }
            }
        }
        pump()
    }

    private func cancel(_ call: Call) {
        if call.stage == .sent { links.first { $0.number == call.link }?.cancel(call) }
        queue.cancel(call)
    }

    /// Starts calls, opens a connection if needed, and writes.
    private func pump() {
        let now = eventLoop.now
        if !queue.isEmpty {
            for link in links { link.perform(link.state.probeIfIdle(now: now)) }
            distribute(now: now)
        }
        connectIfWanted(now: now)
        for link in links where !link.isClosed {
            if link.state.phase == .draining, link.openStreams == 0 {
                link.closeGracefully()
            } else {
                link.flush()
            }
        }
        endIfOver()
        scheduleTick(now: now)
    }

    private func distribute(now: NIODeadline) {
        while let (link, room) = links.map({ ($0, $0.room) }).max(by: { $0.1 < $1.1 }), room > 0 {
            for _ in 0..<room {
                guard let call = queue.takeFirst() else { return }
                call.link = link.number
                call.overdue = .distantFuture
                guard link.begin(call) else {
                    link.state.drain()
                    queue.putBack(call)
                    break
                }
                call.overdue = min(now + TimeAmount(timeout), call.deadline)
            }
        }
    }

    private func connectIfWanted(now: NIODeadline) {
        guard !queue.isClosed || !queue.isEmpty else { return }
        let opening = connecting + links.count { $0.state.phase == .opening }
        let usable = links.count { $0.state.phase == .open }
        switch plan.step(isShort: !queue.isEmpty, usable: usable, opening: opening, now: now) {
        case .nothing: break
        case .wait(let moment): scheduleTick(at: moment, now: now)
        case .connect:
            if let moment = ConnectBudget.shared.withLock({ $0.take(now: now) }) {
                plan.postpone(until: moment)
                scheduleTick(at: moment, now: now)
            } else {
                connect(now: now)
            }
        }
    }

    private func connect(now: NIODeadline) {
        connecting += 1
        linkNumber += 1
        let (number, limits, timeout) = (linkNumber, limits, timeout)
        metrics.connections.increment()
        logger?.debug("connecting", metadata: ["host": "\(connector.host)", "port": "\(connector.target.port)"])
        connector.connect {
            ProviderLink(
                number: number,
                dispatcher: self,
                state: LinkState(limits: limits, openingTime: timeout, now: now)
            )
        } done: { result in
            self.connecting -= 1
            switch result.map(\.value) {
            case .success(let link) where !link.isClosed:
                self.links.append(link)
                self.metrics.open.increment()
            case .success(let link): self.failed(link.failure ?? ChannelError.eof)
            case .failure(let error): self.failed(error)
            }
            self.pump()
        }
    }

    /// Handles a failed connect, or a connection that ended before its first answer.
    private func failed(_ error: any Error) {
        let error = ProviderError(connecting: error, to: connector)
        lastError = error
        plan.failed(now: eventLoop.now, chance: .random(in: 0...1))
        metrics.failures.increment()
        logger?.warning("connection failed", metadata: ["error": "\(error.message)"])
        guard !links.contains(where: { $0.state.phase == .open }) else { return }
        // Waiting does not help if one side does not trust the other.
        let isPermanent = [.untrusted, .badCredential, .badAnswer, .badProxy].contains(error.code)
        queue.fail(error) { isPermanent || !$0.waitsForService }
    }

    // MARK: - Connection events

    func hasRead(_ link: ProviderLink) {
        take(from: link)
        pump()
    }

    private func take(from link: ProviderLink) {
        for (call, end) in link.takeEnded() {
            switch end {
            case .answered:
                link.state.answered()
                plan.succeeded()
                lastError = nil
                call.end(.answered(link: link.number))
            case .untouched: move(call, from: link)
            case .lost(let code):
                let cause = call.answer.isCut ? "its answer is too long" : "it reset the stream (code \(code))"
                let message = "\(connector.endpoint) gave no answer: \(cause)"
                call.end(.failed(ProviderError(.badAnswer, message, mayHaveArrived: true)))
            }
        }
    }

    /// Returns a call that the service did not process to the head of the queue.
    private func move(_ call: Call, from link: ProviderLink) {
        guard call.stage == .sent else { return }
        if let refusal = link.refusal {
            return call.end(.failed(refusal))
        }
        if link.state.phase == .open {
            call.refusals += 1
            if call.refusals > Self.maximumRefusals { return call.end(.untouched) }
        }
        metrics.moves.increment()
        queue.putBack(call)
    }

    func hasClosed(_ link: ProviderLink) {
        guard let index = links.firstIndex(where: { $0 === link }) else { return }
        links.remove(at: index)
        metrics.open.decrement()
        take(from: link)
        link.state.drain()
        let reason = link.refusal ?? link.failure ?? ChannelError.eof
        let error = ProviderError(connecting: reason, to: connector)
        // A service that answered before does not refuse the certificate by closing.
        let message =
            link.state.hasAnswered && ProviderError.isOfClosing(reason)
            ? "\(connector.endpoint) closed the connection before it answered" : error.message
        for call in link.takeCalls() where call.stage == .sent {
            guard call.progress.isWhollySent else {
                move(call, from: link)
                continue
            }
            let code = link.state.hasAnswered ? ProviderError.Code.unreachable : error.code
            call.end(.failed(ProviderError(code, message, mayHaveArrived: true)))
        }
        logger?.debug("connection closed", metadata: ["reason": "\(error.message)"])
        if !link.state.hasAnswered, !queue.isClosed {
            if link.goAway != nil, link.refusal == nil {
                // A graceful close, only early: back off before the next connect.
                plan.failed(now: eventLoop.now, chance: .random(in: 0...1))
            } else {
                failed(reason)
            }
        }
        pump()
    }

    // MARK: - Timers

    private func tick() {
        let now = eventLoop.now
        let standstill = Standstill(due: nextTick?.at ?? now, now: now, tolerance: Self.tickInterval)
        nextTick = nil
        if let standstill {
            for link in links {
                link.state.postponeTimers(by: standstill.duration)
                for call in link.calls {
                    call.overdue = standstill.postponed(call.overdue, now: now, limit: TimeAmount(timeout))
                }
            }
        }
        expire(now: now)
        for link in links where !link.isClosed {
            for call in Array(link.calls) where call.overdue <= now {
                call.overdue = .distantFuture
                link.cancel(call)
                guard call.stage == .sent else { continue }
                metrics.timeouts.increment()
                let message = "\(connector.endpoint) does not answer in time"
                call.end(.failed(ProviderError(.timedOut, message, mayHaveArrived: call.progress.isWhollySent)))
                link.perform(link.state.timedOut(now: now))
            }
            link.perform(link.state.tick(now: now, isBusy: link.openStreams > 0))
        }
        pump()
    }

    private func expire(now: NIODeadline) {
        let endpoint = connector.endpoint
        let error = lastError.map { ProviderError($0.code, $0.message) }
        let isReached = links.contains { $0.state.phase == .open }
        let late = ProviderError(.timedOut, "\(endpoint) accepts no further notification in time")
        queue.fail(isReached ? late : error ?? late) { $0.deadline <= now }
    }

    private func scheduleTick(now: NIODeadline) {
        guard !queue.isEmpty || links.contains(where: { $0.openStreams > 0 }) else {
            if let check = links.map({ $0.state.nextCheck(isBusy: false) }).min() { scheduleTick(at: check, now: now) }
            return
        }
        scheduleTick(at: now + Self.tickInterval, now: now)
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
        guard queue.isClosed, queue.isEmpty, !links.contains(where: { $0.openStreams > 0 }) else { return }
        for link in links where !link.isClosed { link.closeGracefully() }
        // A connection that is still opening closes itself when it is open. Nobody waits for it.
        guard links.isEmpty else { return }
        nextTick?.task.cancel()
        nextTick = nil
        for continuation in onEnd { continuation.resume() }
        onEnd = []
    }
}
