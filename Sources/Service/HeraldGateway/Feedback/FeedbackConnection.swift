import CoreMetrics
import HeraldIdentity
import HeraldListener
import HeraldMailbox
import HeraldModel
import HeraldTrust
import HeraldWire
import Logging
import NIOCore

/// One reader at the port of the feedback service: the channel handler behind TLS.
///
/// 1. Hands the connection over to HTTP/2 if the client begins to speak it.
/// 2. Writes the list in steps, each after the previous write is complete, and closes its output.
/// 3. Waits for the reader's FIN, which confirms the whole list, and deletes it then.
///
/// After an error it closes without close_notify, so that no reader takes a part of the list for the whole.
final class FeedbackConnection: ChannelInboundHandler, RemovableChannelHandler, LoopConnection {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum Phase {
        /// Waits for an HTTP/2 preface and for the store.
        case opening(until: NIODeadline)
        case writing(until: NIODeadline)
        /// The whole list is written.
        case confirming(until: NIODeadline)
        case closed
    }

    private let service: BinaryService
    private let loop: ProviderLoop<FeedbackConnection>
    private let tasks: TaskQueue
    private let gate: FeedbackGate
    private let peer: HandshakePeer
    private let identity: ProviderCertificateIdentity?
    private let list: FeedbackList?

    private var phase: Phase
    private var context: ChannelHandlerContext?
    private var number: UInt64?
    private var prefaceWait: Scheduled<Void>?
    private var hasWaited = false
    /// The list, once it is read, and how much of it is written.
    private var written: (records: [FeedbackRecord], count: Int, tuples: Int)?
    private(set) var deadline: NIODeadline?

    /// Begins after the TLS handshake; `now` is the event loop's time.
    init(
        service: BinaryService,
        loop: ProviderLoop<FeedbackConnection>,
        tasks: TaskQueue,
        gate: FeedbackGate,
        peer: HandshakePeer,
        now: NIODeadline
    ) {
        self.service = service
        self.loop = loop
        self.tasks = tasks
        self.gate = gate
        self.peer = peer
        let configuration = service.feedback
        phase = .opening(until: now + TimeAmount(configuration.preface))
        if let (found, environment) = service.identify(peer, listener: configuration.environment) {
            identity = found
            list = FeedbackList(
                source: service.feedbackSource,
                apps: { [admission = service.admission] in FeedbackList.apps(found, environment, admission) },
                limit: configuration.recordsPerConnection
            )
            // Includes the time of the store.
            phase = .opening(until: now + TimeAmount(configuration.write))
        } else {
            (identity, list) = (nil, nil)
        }
    }

    // MARK: - Channel events

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        deadline = context.eventLoop.now + Self.tick
        number = loop.add(self).number
        service.metrics.feedbackConnections.increment()
        if let list {
            peer.connection?.becameKnown()
            load(list, context)
        } else if peer.certificate != nil {
            abort(context)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        leave()
    }

    func channelInactive(context: ChannelHandlerContext) {
        if case .confirming = phase, !gate.isBroken { deleteList() }
        leave()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // The service has no commands; it ignores everything else.
        guard case .opening = phase else { return }
        let bytes = unwrapInboundIn(data)
        guard bytes.getInteger(at: bytes.readerIndex, as: UInt8.self) == BinaryService.prefaceByte else { return }
        do {
            try service.handOver(from: self, peer, context, bytes)
        } catch {
            abort(context)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        service.logger.debug("feedback connection failed", metadata: ["error": "\(TLSFault.words(for: error))"])
        if case .confirming = phase { return }
        abort(context)
    }

    // MARK: - Completions: a reader posts nothing.

    func settled(_ number: UInt64, _ outcome: CompletionOutcome, now: NIODeadline) {}
    func flushSettled() {}

    // MARK: - Service

    /// A reader in the middle of the list gets it again on its next connection.
    func stop() {
        guard let context else { return }
        switch phase {
        case .opening, .writing: abort(context)
        case .confirming:
            phase = .confirming(until: context.eventLoop.now + TimeAmount(service.binary.stopDrain))
        case .closed: break
        }
    }

    /// Closes at once: the stop of the service has taken too long.
    func cutOff() {
        if let context { abort(context) }
    }

    /// Checks the certificate again.
    func reviewCertificate() {
        guard let context, let identity, !service.admission.isValid(identity, at: service.clock.now()) else {
            return
        }
        abort(context)
    }

    // MARK: - List

    private func load(_ list: FeedbackList, _ context: ChannelHandlerContext) {
        let eventLoop = context.eventLoop
        let connection = NIOLoopBound(self, eventLoop: eventLoop)
        prefaceWait = eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(service.feedback.prefaceWait)) {
            self.hasWaited = true
            self.begin()
        }
        let logger = service.logger
        tasks.add {
            do {
                let records = try await list.load()
                eventLoop.execute { connection.value.loaded(records) }
            } catch {
                logger.error("could not read the feedback list", metadata: ["error": "\(error)"])
                eventLoop.execute { connection.value.cutOff() }
            }
        }
    }

    private func loaded(_ records: [FeedbackRecord]) {
        written = (records, 0, 0)
        begin()
    }

    private func begin() {
        guard let context, hasWaited, written != nil, case .opening = phase else { return }
        writeStep(context)
    }

    private func writeStep(_ context: ChannelHandlerContext) {
        guard let (records, position, _) = written else { return }
        guard position < records.count else { return finish(context) }
        phase = .writing(until: context.eventLoop.now + TimeAmount(service.feedback.write))
        let end = min(records.count, position + service.feedback.recordsPerStep)
        var buffer = context.channel.allocator.buffer(capacity: (end - position) * 38)
        for record in records[position..<end] where !service.feedbackSource.isBack(record) {
            let contents = TokenContents(slot: record.slot, generation: record.generation)
            for token in service.admission.tokens(of: contents) {
                buffer.writeFeedbackTuple(FeedbackTuple(time: record.time, token: token))
                written?.tuples += 1
            }
        }
        written?.count = end
        context.writeAndFlush(wrapOutboundOut(buffer)).assumeIsolated().whenComplete { result in
            guard let context = self.context, case .writing = self.phase else { return }
            switch result {
            case .success: self.writeStep(context)
            case .failure: self.abort(context)
            }
        }
    }

    private func finish(_ context: ChannelHandlerContext) {
        phase = .confirming(until: context.eventLoop.now + TimeAmount(service.feedback.confirmation))
        gate.holdsClose = true
        context.close(mode: .output, promise: nil)
    }

    /// Deletes the list, which the reader has confirmed.
    private func deleteList() {
        guard let (records, _, tuples) = written, !records.isEmpty else { return }
        service.metrics.feedbackTuples.increment(by: tuples)
        let (source, logger) = (service.feedbackSource, service.logger)
        tasks.add {
            do {
                try await source.clearFeedback(records)
            } catch {
                logger.warning(
                    "could not delete feedback that was read; it will be reported again",
                    metadata: ["error": "\(error)"]
                )
            }
        }
    }

    private func abort(_ context: ChannelHandlerContext) {
        if case .closed = phase { return }
        phase = .closed
        deadline = nil
        gate.holdsClose = false
        context.closeTransport()
    }

    private func leave() {
        phase = .closed
        deadline = nil
        prefaceWait?.cancel()
        if let number { loop.remove(number) }
        number = nil
        context = nil
    }

    private static let tick = TimeAmount.seconds(1)
}

extension FeedbackConnection {
    func deadlinePassed() {
        guard let context else {
            deadline = nil
            return
        }
        let now = context.eventLoop.now
        deadline = now + Self.tick
        switch phase {
        case .opening(let until) where until <= now && list == nil:
            // An anonymous client that said nothing: a normal end.
            phase = .closed
            context.close(promise: nil)
        case .opening(let until), .writing(let until), .confirming(let until):
            if until <= now { abort(context) }
        case .closed:
            deadline = nil
        }
    }
}
