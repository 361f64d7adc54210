import NIOCore

/// Makes the consumers of an ``OrderedConsumer`` one after the other.
///
/// It stays on the connection's loop.
final class OrderedReader {
    private let jetStream: JetStream
    private let stream: String
    private let subjects: [String]
    private let origin: OrderedConsumer.Start
    private let onEvent: @Sendable (OrderedConsumer.Event) -> Void
    private var feed = OrderedFeed()
    /// Number of the present consumer; what belongs to a former one is ignored.
    private var round = 0
    private var consumer: (name: String, subscription: NATSConnection.Subscription)?
    private var isRunning = false
    private var isInterrupted = false
    private var hasCaughtUp = false
    private var heard = NIODeadline.distantPast
    private var timer: Scheduled<Void>?
    private var pause: Duration

    init(
        _ jetStream: JetStream,
        stream: String,
        subjects: [String],
        from origin: OrderedConsumer.Start,
        onEvent: @escaping @Sendable (OrderedConsumer.Event) -> Void
    ) {
        self.jetStream = jetStream
        self.stream = stream
        self.subjects = subjects
        self.origin = origin
        self.onEvent = onEvent
        pause = jetStream.connection.limits.shortestPause
        if case .after(let sequence) = origin { feed = OrderedFeed(after: sequence) }
    }

    private var connection: NATSConnection { jetStream.connection }

    func start() {
        guard !isRunning else { return }
        isRunning = true
        begin()
    }

    func stop() {
        isRunning = false
        round += 1
        timer?.cancel()
        endConsumer()
    }

    // MARK: - A consumer

    private func begin() {
        round += 1
        feed.begin()
        let (round, name) = (round, NATSConnection.randomName())
        let bound = NIOLoopBound(self, eventLoop: connection.eventLoop)
        let inbox = "_INBOX.\(name)"
        do throws(NATSError) {
            let subscription = try connection.subscribe(to: inbox) { message in
                bound.value.received(message, round)
            }
            consumer = (name, subscription)
        } catch {
            return failed(.failed(error), round)
        }
        let body = ConsumerRequest(streamName: stream, config: configuration(name: name, inbox: inbox))
        jetStream.call("CONSUMER.CREATE", [stream, name], body, within: JetStream.managementTime) {
            (result: Result<ConsumerAnswer, JetStreamError>) in
            bound.value.made(result, round)
        }
    }

    private func configuration(name: String, inbox: String) -> ConsumerConfiguration {
        var configuration = ConsumerConfiguration(
            name: name,
            deliverSubject: inbox,
            filterSubjects: subjects,
            idleHeartbeat: TimeAmount(connection.limits.consumerHeartbeat).nanoseconds
        )
        if let last = feed.last {
            configuration.deliverPolicy = "by_start_sequence"
            configuration.optStartSeq = last < .max ? last + 1 : last
        } else if origin == .newest {
            configuration.deliverPolicy = "last_per_subject"
        }
        return configuration
    }

    private func made(_ result: Result<ConsumerAnswer, JetStreamError>, _ round: Int) {
        guard round == self.round else { return }
        switch result {
        case .failure(let error): failed(error, round)
        case .success(let answer):
            pause = connection.limits.shortestPause
            if isInterrupted {
                isInterrupted = false
                onEvent(.resumed)
            }
            guard round == self.round else { return }
            heard = .now()
            watch()
            if feed.created(total: answer.total) { caughtUp() }
        }
    }

    private func received(_ message: NATSMessage, _ round: Int) {
        guard round == self.round else { return }
        heard = .now()
        switch feed.received(message) {
        case .none: break
        case .deliver(let stored, let reachesEnd):
            onEvent(.message(stored))
            if reachesEnd, round == self.round { caughtUp() }
        case .goOn(let subject): try? connection.publish(ByteBuffer(), to: subject)
        case .idle: caughtUp()
        case .restart(let error): failed(.failed(error), round)
        }
    }

    private func caughtUp() {
        guard !hasCaughtUp else { return }
        hasCaughtUp = true
        onEvent(.caughtUp)
    }

    // MARK: - Failures

    /// Looks after each heartbeat's time whether the server has been silent for too long.
    private func watch() {
        let limits = connection.limits
        let bound = NIOLoopBound((self, round), eventLoop: connection.eventLoop)
        timer = connection.eventLoop.scheduleTask(in: TimeAmount(limits.consumerHeartbeat)) {
            let (reader, round) = bound.value
            guard round == reader.round else { return }
            let silence = TimeAmount(limits.consumerHeartbeat * (limits.missingHeartbeats + 1))
            guard NIODeadline.now() - reader.heard < silence else {
                return reader.failed(.failed(NATSError(.timeout, "the consumer is silent")), round)
            }
            reader.watch()
        }
    }

    /// Gives the consumer up, and begins another one after a pause.
    private func failed(_ error: JetStreamError, _ round: Int) {
        guard isRunning, round == self.round else { return }
        self.round += 1
        timer?.cancel()
        endConsumer()
        if !isInterrupted {
            isInterrupted = true
            onEvent(.interrupted(error))
        }
        let next = self.round
        let bound = NIOLoopBound(self, eventLoop: connection.eventLoop)
        timer = connection.eventLoop.scheduleTask(in: TimeAmount(pause)) {
            guard bound.value.isRunning, bound.value.round == next else { return }
            bound.value.begin()
        }
        // Without a connection there is no request, and the next one is used soon.
        pause = min(
            pause * 2,
            connection.isConnected ? connection.limits.longestPause : connection.limits.shortestPause * 4
        )
    }

    private func endConsumer() {
        guard let (name, subscription) = consumer else { return }
        consumer = nil
        connection.unsubscribe(subscription)
        // The server removes it by itself after a while, so that the answer does not matter.
        jetStream.call("CONSUMER.DELETE", [stream, name], Bool?.none, within: JetStream.managementTime) {
            (_: Result<Ignored, JetStreamError>) in
        }
    }
}

/// Request for a consumer, in the words of the protocol.
private struct ConsumerRequest: Encodable {
    let streamName: String
    let config: ConsumerConfiguration
    let action = "create"
}

/// Configuration of an ordered consumer, in the words of the protocol; times are nanoseconds.
private struct ConsumerConfiguration: Encodable {
    let name: String
    let deliverSubject: String
    let filterSubjects: [String]
    let idleHeartbeat: Int64
    var deliverPolicy = "all"
    var optStartSeq: UInt64?
    let ackPolicy = "none"
    let replayPolicy = "instant"
    let maxDeliver = 1
    let memStorage = true
    let numReplicas = 1
    let flowControl = true
    /// Time after which the server removes a consumer that nobody listens to.
    let inactiveThreshold: Int64 = 30_000_000_000
}

/// Answer to a request for a consumer.
private struct ConsumerAnswer: Decodable, Sendable {
    let pending: UInt64
    let delivered: Delivered?

    struct Delivered: Decodable, Sendable {
        let number: UInt64

        private enum CodingKeys: String, CodingKey {
            case number = "consumer_seq"
        }
    }

    private enum CodingKeys: String, CodingKey {
        case delivered
        case pending = "num_pending"
    }

    /// Messages that wait for the consumer, and those that are on their way.
    var total: UInt64 {
        let (sum, overflow) = pending.addingReportingOverflow(delivered?.number ?? 0)
        return overflow ? .max : sum
    }
}

private struct Ignored: Decodable {}
