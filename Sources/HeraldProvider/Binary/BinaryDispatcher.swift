import CoreMetrics
import HeraldModel
import HeraldWire
import Logging
import NIOCore
import Synchronization

/// Brings calls to a service of the binary interface: a bounded queue in front of one connection after the other.
///
/// It performs what the structs decide: ``BinaryHistory`` (what became of what was written) and ``ConnectPlan`` (when to
/// connect).
///
/// Unchecked: all that varies, but for the inbox with its lock, is touched on `eventLoop` alone.
final class BinaryDispatcher: @unchecked Sendable {
    /// How often what waits for time is looked at while there is something.
    private static let beat = TimeAmount.milliseconds(100)
    /// How much is handed to the socket at once, in bytes.
    private static let writeBytes = 32_768

    let eventLoop: any EventLoop
    private let connector: Connector
    private let configuration: BinaryClientConfiguration
    private let metrics: ProviderMetrics
    private var logger: Logger? { configuration.logger }
    private var place: String { "\(connector.host):\(connector.port)" }
    private let inbox = CallInbox<BinaryCall>()

    private var queue: CallQueue<BinaryCall>
    private var history: BinaryHistory<BinaryCall>
    private var link: BinaryLink?
    private var isConnecting = false
    /// Until when the connection must do what it is waited for: agree on TLS, or answer the checkpoint.
    private var overdue = NIODeadline.distantFuture
    /// Whether the service has shown that it speaks the interface and takes the certificate, and nothing has raised
    /// doubts since.
    private var isKnown = false
    private var plan: ConnectPlan
    private var lastError: ProviderError?
    private var nextBeat: (at: NIODeadline, task: Scheduled<Void>)?
    private var onEnd: [CheckedContinuation<Void, Never>] = []

    init(connector: Connector, configuration: BinaryClientConfiguration, metrics: ProviderMetrics) {
        self.connector = connector
        self.configuration = configuration
        self.metrics = metrics
        eventLoop = connector.eventLoop
        queue = CallQueue(limit: configuration.maximumWaiting)
        history = BinaryHistory(limit: configuration.maximumUnsettled)
        var limits = ProviderConnectionLimits()
        limits.maximum = 1
        limits.firstPause = configuration.firstPause
        limits.longestPause = configuration.longestPause
        plan = ConnectPlan(limits: limits)
    }

    // From any thread.

    /// Sends a notification until it is known what became of it.
    func perform(_ call: BinaryCall) async -> BinaryCall.Outcome {
        await inbox.perform(call) { self.wake() }
    }

    /// Takes no further call, waits for those in hand, and closes the connection.
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
            // One that is written stays in the history, where its place tells about others.
            case .cancel(let call): queue.cancel(call)
            case .run(let work): work()
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
        scheduleBeat(now: now)
    }

    // Writing.

    private func write(to link: BinaryLink, now: NIODeadline) {
        guard history.checkpoint == nil else { return }
        guard isKnown else { return writeCheckpoint(to: link, now: now) }
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
            // Whoever wanted it has gone meanwhile.
            guard queue.first() == nil else { return }
            forgetLink()
            return link.close(nil)
        }
        let isHeldUp = queue.first().map { !history.hasRoom(for: $0.notification.identifier) } ?? queue.isClosed
        if isHeldUp || history.checkpointDue(after: configuration.settleAfter).map({ $0 <= now }) == true {
            writeCheckpoint(to: link, now: now)
        }
    }

    private func writeCheckpoint(to link: BinaryLink, now: NIODeadline) {
        guard var buffer = link.makeBuffer(capacity: 32) else { return }
        buffer.writeCheckpoint(history.writeCheckpoint())
        link.write(buffer, upTo: history.count)
        overdue = now + TimeAmount(configuration.timeout)
    }

    // Connecting.

    private func connectIfWanted(now: NIODeadline) {
        guard !isConnecting else { return }
        switch plan.step(isShort: !queue.isEmpty, usable: 0, opening: 0, now: now) {
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
        isConnecting = true
        metrics.connections.increment()
        logger?.debug("connecting", metadata: ["host": "\(connector.host)", "port": "\(connector.port)"])
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

    /// A connection could not be made, or ended without an answer, or with one that is none.
    private func failed(_ error: any Error) {
        let error = ProviderError(connecting: error, host: connector.host, port: connector.port)
        isKnown = false
        lastError = error
        plan.failed(now: eventLoop.now, chance: .random(in: 0...1))
        metrics.failures.increment()
        logger?.warning("no connection", metadata: ["error": "\(error.message)"])
        // Whom the service does not trust, or who does not trust it, has nothing to wait for.
        let isHopeless = error.code == .untrusted || error.code == .badCredential || error.code == .badAnswer
        if isHopeless || !configuration.waitsForService { queue.fail(error) { _ in true } }
    }

    // What the connection tells.

    func hasOpened(_ link: BinaryLink) {
        if link === self.link { pump() }
    }

    func hasRoom(_ link: BinaryLink) {
        if link === self.link { pump() }
    }

    /// The first so many notifications of the connection went to the socket whole.
    func hasPassedOn(_ link: BinaryLink, _ count: Int) {
        if link === self.link { history.pass(count) }
    }

    func hasAnswered(_ link: BinaryLink, _ response: BinaryErrorResponse) {
        guard link === self.link else { return }
        forgetLink()
        let isGreeting = history.count == 0
        let settlement = history.end(.answered(response))
        settle(settlement, ProviderError.notNaming)
        if settlement.isOfCheckpoint {
            isKnown = true
            plan.succeeded()
            lastError = nil
        } else if response.status == .shutdown {
            failed(ProviderError.stopping)
        } else if settlement.isOfNothing {
            failed(ProviderError.notNaming)
        } else if response.status == .processingError {
            // The service's own trouble: the next connection is made a little later.
            plan.failed(now: eventLoop.now, chance: .random(in: 0...1))
        } else {
            plan.succeeded()
        }
        logger?.debug(
            "the service has answered",
            metadata: [
                "status": "\(response.status.rawValue)", "accepted": "\(settlement.accepted.count)",
                "again": "\(settlement.again.count)", "greeting": "\(isGreeting)",
            ]
        )
        pump()
    }

    func hasClosed(_ link: BinaryLink) {
        guard link === self.link else { return }
        forgetLink()
        let reason = link.failure ?? ChannelError.eof
        let error = ProviderError(connecting: reason, host: connector.host, port: connector.port)
        settle(history.end(.lost), error)
        failed(reason)
        pump()
    }

    private func forgetLink() {
        if link != nil { metrics.open.decrement() }
        link = nil
        overdue = .distantFuture
    }

    /// Gives their outcomes to those that have one, and puts the others back to the head of the queue.
    private func settle(_ settlement: BinaryHistory<BinaryCall>.Settlement, _ error: ProviderError) {
        for call in settlement.accepted { call.end(.answered(.accepted)) }
        if let (call, status) = settlement.refused { call.end(.answered(.refused(BinaryRefusal(status)))) }
        let doubt = ProviderError(error.code, error.message, mayHaveArrived: true)
        for call in settlement.uncertain { call.end(.answered(.uncertain(doubt))) }
        for call in settlement.again.reversed() where call.stage == .sent {
            metrics.moves.increment()
            queue.putBack(call)
        }
    }

    // What time brings.

    private func beatNow() {
        nextBeat = nil
        let now = eventLoop.now
        expire(now: now)
        if overdue <= now, let link {
            metrics.timeouts.increment()
            let question = link.isOpen ? "does not say in time how far it has come" : "does not agree on TLS in time"
            link.close(ProviderError(.timedOut, "\(place) \(question)"))
        }
        pump()
    }

    private func expire(now: NIODeadline) {
        let late = ProviderError(.timedOut, "\(place) takes no further notification in time")
        queue.fail(link == nil ? lastError ?? late : late) { $0.deadline <= now }
        let doubt = ProviderError(.timedOut, "\(place) did not say in time what became of it", mayHaveArrived: true)
        for call in history.items where call.deadline <= now { call.end(.answered(.uncertain(doubt))) }
    }

    private func scheduleBeat(now: NIODeadline) {
        guard !queue.isEmpty || link != nil else { return }
        let due = history.checkpointDue(after: configuration.settleAfter) ?? .distantFuture
        beat(at: min(now + Self.beat, max(due, now)), now: now)
    }

    private func beat(at moment: NIODeadline, now: NIODeadline) {
        if let nextBeat {
            guard moment < nextBeat.at else { return }
            nextBeat.task.cancel()
        }
        let moment = max(moment, now + .milliseconds(1))
        nextBeat = (moment, eventLoop.scheduleTask(deadline: moment) { self.beatNow() })
    }

    private func endIfOver() {
        guard queue.isClosed, queue.isEmpty, history.count == 0, !isConnecting else { return }
        if let link {
            forgetLink()
            _ = history.end(.lost)
            link.close(nil)
        }
        nextBeat?.task.cancel()
        nextBeat = nil
        for continuation in onEnd { continuation.resume() }
        onEnd = []
    }
}
