import CoreMetrics
import HeraldDoor
import HeraldMailbox
import HeraldModel
import HeraldTrust
import HeraldWire
import Logging
import NIOCore

/// One reader at the port of the feedback service: the channel handler behind TLS.
///
/// 1. Makes way for HTTP/2 where the client begins to speak it.
/// 2. Writes the list, step by step, each once the one before has gone out, and closes its side.
/// 3. Waits for the reader's own end, which confirms that it has read all of it; only then is the list forgotten.
///
/// What goes wrong ends without the end of TLS, so that nobody takes a part, or nothing, for the whole.
final class FeedbackConnection: ChannelInboundHandler, RemovableChannelHandler, LoopConnection {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum Phase {
        /// Waits for what the client may have to say, and for the store.
        case opening(until: NIODeadline)
        case writing(until: NIODeadline)
        /// Everything is out.
        case confirming(until: NIODeadline)
        case closed
    }

    private let service: BinaryService
    private let loop: ProviderLoop<FeedbackConnection>
    private let errands: Errands
    private let gate: FeedbackGate
    private let peer: HandshakePeer
    private let identity: ProviderCertificateIdentity?
    private let list: FeedbackList?
    /// Whether it showed a certificate that is not good here.
    private let isUnwelcome: Bool

    private var phase: Phase
    private var context: ChannelHandlerContext?
    private var number: UInt64?
    private var prefaceWait: Scheduled<Void>?
    private var hasWaited = false
    private var records: [FeedbackRecord]?
    private var position = 0
    private var tupleCount = 0
    private(set) var deadline: NIODeadline?

    /// Begins with a peer whose handshake is over; `now` is by the event loop's clock.
    init(
        service: BinaryService,
        loop: ProviderLoop<FeedbackConnection>,
        errands: Errands,
        gate: FeedbackGate,
        peer: HandshakePeer,
        now: NIODeadline
    ) {
        self.service = service
        self.loop = loop
        self.errands = errands
        self.gate = gate
        self.peer = peer
        let configuration = service.feedback
        phase = .opening(until: now + TimeAmount(configuration.preface))
        switch service.identify(peer, door: configuration.environment) {
        case .stranger:
            (identity, list, isUnwelcome) = (nil, nil, false)
        case .provider(let found, let environment):
            identity = found
            list = FeedbackList(
                book: service.book,
                apps: FeedbackList.apps(found, environment, service.admission),
                limit: configuration.recordsPerConnection
            )
            isUnwelcome = false
            // The store is read, too; it has the time of a write.
            phase = .opening(until: now + TimeAmount(configuration.write))
        case .unwelcome:
            (identity, list, isUnwelcome) = (nil, nil, true)
        }
    }

    // What the channel says.

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        deadline = context.eventLoop.now + Self.tick
        number = loop.add(self).number
        service.metrics.feedbackConnections.increment()
        guard !isUnwelcome else { return abort(context) }
        if let list { load(list, context) }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        leave()
    }

    func channelInactive(context: ChannelHandlerContext) {
        if case .confirming = phase, !gate.isBroken { forget() }
        leave()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // The service takes no command: whatever else a client says is passed over.
        guard case .opening = phase else { return }
        let bytes = unwrapInboundIn(data)
        guard bytes.getInteger(at: bytes.readerIndex, as: UInt8.self) == BinaryService.prefaceByte else { return }
        do {
            try service.handOver(self, peer, context, bytes)
        } catch {
            abort(context)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        service.logger.debug("feedback connection failed", metadata: ["error": "\(TLSFault.words(for: error))"])
        if case .confirming = phase { return }
        abort(context)
    }

    // What the post office says: nothing of a reader is in its hands.

    func settled(_ number: UInt64, _ outcome: ReceiptOutcome) {}
    func noteTouched() -> Bool { false }
    func flushTouched() {}

    // What the gateway says.

    /// The service stops: a reader in the middle of the list gets it again.
    func stop() {
        guard let context else { return }
        switch phase {
        case .opening, .writing: abort(context)
        case .confirming:
            phase = .confirming(until: context.eventLoop.now + TimeAmount(service.binary.stopDrain))
        case .closed: break
        }
    }

    /// The service has stopped.
    func cutOff() {
        if let context { abort(context) }
    }

    /// Looks again whether the connection's certificate is good.
    func reviewCertificate() {
        guard let context, let identity, !service.admission.isStillGood(identity, at: service.clock.now()) else {
            return
        }
        abort(context)
    }

    // The list.

    private func load(_ list: FeedbackList, _ context: ChannelHandlerContext) {
        let eventLoop = context.eventLoop
        let connection = NIOLoopBound(self, eventLoop: eventLoop)
        prefaceWait = eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(service.feedback.prefaceWait)) {
            self.hasWaited = true
            self.begin()
        }
        let logger = service.logger
        errands.add {
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
        self.records = records
        begin()
    }

    private func begin() {
        guard let context, hasWaited, records != nil, case .opening = phase else { return }
        writeStep(context)
    }

    private func writeStep(_ context: ChannelHandlerContext) {
        guard let records else { return }
        guard position < records.count else { return finish(context) }
        phase = .writing(until: context.eventLoop.now + TimeAmount(service.feedback.write))
        let end = min(records.count, position + service.feedback.recordsPerStep)
        var buffer = context.channel.allocator.buffer(capacity: (end - position) * 38)
        for record in records[position..<end] where !service.book.isBack(record) {
            let contents = TokenContents(slot: record.slot, generation: record.generation)
            for token in service.admission.tokens(of: contents) {
                buffer.writeFeedbackTuple(FeedbackTuple(time: record.time, token: token))
                tupleCount += 1
            }
        }
        position = end
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

    /// The reader has all of it.
    private func forget() {
        guard let records, !records.isEmpty else { return }
        service.metrics.feedbackTuples.increment(by: tupleCount)
        let (book, logger) = (service.book, service.logger)
        errands.add {
            do {
                try await book.clearFeedback(records)
            } catch {
                logger.warning(
                    "could not forget feedback that was read; it is reported again",
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
        TransportEnd.close(context)
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
            // Nobody to tell anything to; a client in good order.
            phase = .closed
            context.close(promise: nil)
        case .opening(let until), .writing(let until), .confirming(let until):
            if until <= now { abort(context) }
        case .closed:
            deadline = nil
        }
    }
}
