import CoreMetrics
import HeraldModel
import Logging
import NIOCore
import Synchronization

/// Brings calls to connections: a bounded queue in front of a few connections, all on one event loop.
///
/// It performs what the structs decide: ``LinkState`` for each connection, ``ConnectPlan`` for their number.
///
/// Unchecked: all that varies, but for the inbox with its lock, is touched on `eventLoop` alone.
final class Dispatcher: @unchecked Sendable {
    /// How often what waits for time is looked at while there is something.
    private static let beat = TimeAmount.milliseconds(100)
    /// How often a connection that goes on may decline a call before its sender is asked.
    private static let refusals = 3

    let eventLoop: any EventLoop
    private let connector: Connector
    private let limits: ProviderConnectionLimits
    private let timeout: Duration
    private let logger: Logger?
    private let metrics: ProviderMetrics
    private let inbox = CallInbox<Call>()

    private var queue: CallQueue<Call>
    private var links: [ProviderLink] = []
    private var connecting = 0
    private var plan: ConnectPlan
    private var linkNumber = 0
    private var lastError: ProviderError?
    private var nextBeat: (at: NIODeadline, task: Scheduled<Void>)?
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

    // From any thread.

    /// Has one attempt made.
    func perform(_ call: Call) async -> Call.Outcome {
        await inbox.perform(call) { self.wake() }
    }

    /// Has no further request begun on a connection.
    func retire(_ link: Int) {
        inbox.leave(.run { self.links.first { $0.number == link }?.state.leave() }, wake: wake)
    }

    /// Takes no further call, waits for those in hand, and closes the connections.
    func shutDown() async {
        await withCheckedContinuation { inbox.leave(.shutDown($0), wake: wake) }
    }

    /// As ``shutDown()``, waiting for nothing.
    func abandon() {
        inbox.leave(.shutDown(nil), wake: wake)
    }

    private func wake() {
        eventLoop.execute { self.handOver() }
    }

    // On the event loop.

    private func handOver() {
        for item in inbox.take() {
            switch item {
            case .start(let call): queue.accept(call)
            case .cancel(let call): cancel(call)
            case .run(let work): work()
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

    /// Begins what can be begun, opens a connection if one is wanted, and writes.
    private func pump() {
        let now = eventLoop.now
        if !queue.isEmpty {
            for link in links { link.perform(link.state.wanted(now: now)) }
            distribute(now: now)
        }
        connectIfWanted(now: now)
        for link in links where !link.isClosed {
            if link.state.phase == .leaving, link.openStreams == 0 {
                link.leave()
            } else {
                link.flush()
            }
        }
        endIfOver()
        scheduleBeat(now: now)
    }

    private func distribute(now: NIODeadline) {
        while let (link, room) = links.map({ ($0, $0.room) }).max(by: { $0.1 < $1.1 }), room > 0 {
            for _ in 0..<room {
                guard let call = queue.takeFirst() else { return }
                call.link = link.number
                call.overdue = .distantFuture
                guard link.begin(call) else {
                    link.state.leave()
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
        case .wait(let moment): beat(at: moment, now: now)
        case .connect:
            if let moment = ConnectBudget.shared.withLock({ $0.take(now: now) }) {
                plan.held(until: moment)
                beat(at: moment, now: now)
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
        logger?.debug("connecting", metadata: ["host": "\(connector.host)", "port": "\(connector.port)"])
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

    /// A connection could not be made, or ended before it answered anything.
    private func failed(_ error: any Error) {
        let error = ProviderError(connecting: error, host: connector.host, port: connector.port)
        lastError = error
        plan.failed(now: eventLoop.now, chance: .random(in: 0...1))
        metrics.failures.increment()
        logger?.warning("no connection", metadata: ["error": "\(error.message)"])
        guard !links.contains(where: { $0.state.phase == .open }) else { return }
        // Whom the service does not trust, or who does not trust it, has nothing to wait for.
        let isHopeless = error.code == .untrusted || error.code == .badCredential || error.code == .badAnswer
        queue.fail(error) { isHopeless || !$0.waitsForService }
    }

    // What connections tell.

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
                call.end(.answered(call.answer, link: link.number))
            case .untouched: move(call, from: link)
            case .lost(let code):
                let cause = call.answer.isCut ? "its answer is too long" : "it reset the stream (code \(code))"
                let message = "\(connector.host):\(connector.port) gave no answer: \(cause)"
                call.end(.failed(ProviderError(.badAnswer, message, mayHaveArrived: true)))
            }
        }
    }

    /// Nobody looked at a call: it goes to the head of the queue.
    private func move(_ call: Call, from link: ProviderLink) {
        guard call.stage == .sent else { return }
        if let refusal = link.refusal {
            return call.end(.failed(refusal))
        }
        if link.state.phase == .open {
            call.refusals += 1
            if call.refusals > Self.refusals { return call.end(.untouched) }
        }
        metrics.moves.increment()
        queue.putBack(call)
    }

    func hasClosed(_ link: ProviderLink) {
        guard let index = links.firstIndex(where: { $0 === link }) else { return }
        links.remove(at: index)
        metrics.open.decrement()
        take(from: link)
        link.state.leave()
        let reason = link.refusal ?? link.failure ?? ChannelError.eof
        let error = ProviderError(connecting: reason, host: connector.host, port: connector.port)
        // Who has answered before does not refuse the certificate by closing.
        let message =
            link.state.hasAnswered && ProviderError.isOfClosing(reason)
            ? "\(connector.host):\(connector.port) closed the connection before it answered" : error.message
        for call in link.takeCalls() where call.stage == .sent {
            guard call.isWhollySent else {
                move(call, from: link)
                continue
            }
            let code = link.state.hasAnswered ? ProviderError.Code.unreachable : error.code
            call.end(.failed(ProviderError(code, message, mayHaveArrived: true)))
        }
        logger?.debug("connection closed", metadata: ["reason": "\(error.message)"])
        if !link.state.hasAnswered, !queue.isClosed {
            if link.farewell != nil, link.refusal == nil {
                // It went as it should, only soon: the next is made a little later.
                plan.failed(now: eventLoop.now, chance: .random(in: 0...1))
            } else {
                failed(reason)
            }
        }
        pump()
    }

    // What time brings.

    private func beat() {
        let now = eventLoop.now
        // A machine that slept, or was busy, must not take that for the service's silence.
        let lateness = now - (nextBeat?.at ?? now)
        nextBeat = nil
        if lateness > Self.beat {
            for link in links { link.state.excuse(lateness) }
        }
        expire(now: now)
        for link in links where !link.isClosed {
            for call in Array(link.calls) where call.overdue <= now {
                call.overdue = .distantFuture
                link.cancel(call)
                guard call.stage == .sent else { continue }
                metrics.timeouts.increment()
                let message = "\(connector.host):\(connector.port) does not answer in time"
                call.end(.failed(ProviderError(.timedOut, message, mayHaveArrived: call.isWhollySent)))
                link.perform(link.state.timedOut(now: now))
            }
            link.perform(link.state.tick(now: now, isBusy: link.openStreams > 0))
        }
        pump()
    }

    private func expire(now: NIODeadline) {
        let place = "\(connector.host):\(connector.port)"
        let error = lastError.map { ProviderError($0.code, $0.message) }
        let isReached = links.contains { $0.state.phase == .open }
        let late = ProviderError(.timedOut, "\(place) takes no further notification in time")
        queue.fail(isReached ? late : error ?? late) { $0.deadline <= now }
    }

    private func scheduleBeat(now: NIODeadline) {
        guard !queue.isEmpty || links.contains(where: { $0.openStreams > 0 }) else {
            if let check = links.map({ $0.state.nextCheck(isBusy: false) }).min() { beat(at: check, now: now) }
            return
        }
        beat(at: now + Self.beat, now: now)
    }

    private func beat(at moment: NIODeadline, now: NIODeadline) {
        if let nextBeat {
            guard moment < nextBeat.at else { return }
            nextBeat.task.cancel()
        }
        let moment = max(moment, now + .milliseconds(1))
        nextBeat = (moment, eventLoop.scheduleTask(deadline: moment) { self.beat() })
    }

    private func endIfOver() {
        guard queue.isClosed, queue.isEmpty, !links.contains(where: { $0.openStreams > 0 }) else { return }
        for link in links where !link.isClosed { link.leave() }
        // A connection that is still being made is closed when it is there: nobody waits for an address that is silent.
        guard links.isEmpty else { return }
        nextBeat?.task.cancel()
        nextBeat = nil
        for continuation in onEnd { continuation.resume() }
        onEnd = []
    }
}
