import HeraldWire
import NIOCore

/// The run of a client: one task that hears of everything, in order, and owns what is decided.
///
/// Beside it there are only tasks that wait: for bytes, for a time, for changes of the network.
struct LineRun {
    private let client: DeviceClient
    private var iterator: AsyncStream<LineInput>.Iterator
    private let inputs: AsyncStream<LineInput>.Continuation
    private var reconnection: Reconnection
    /// The number of the present attempt.
    private var attempt = 0
    /// What was new with the last input.
    private var news = LineNews()
    /// Since when the device is let in.
    private var live: ContinuousClock.Instant?

    init(
        _ client: DeviceClient,
        _ iterator: AsyncStream<LineInput>.Iterator,
        _ inputs: AsyncStream<LineInput>.Continuation
    ) {
        self.client = client
        self.iterator = iterator
        self.inputs = inputs
        reconnection = Reconnection(client.configuration.reconnection, now: .now)
    }

    mutating func run(_ handle: (DeviceEvent) async throws -> Void) async throws {
        while true {
            try Task.checkCancellation()
            if !hasNetwork {
                try await handle(.disconnected(reason: DeviceClient.isOffline, nextAttempt: nil))
                while !hasNetwork { _ = try await next() }
            }
            attempt += 1
            live = nil
            reconnection.attempt(at: .now)
            let end = try await connection(handle)
            client.setWatch(nil)
            try Task.checkCancellation()
            guard end.advice != .giveUp else { throw DeviceError(.refused, end.reason) }
            guard hasNetwork else { continue }
            let pause = reconnection.pause(
                after: end.advice,
                lived: live.map { .now - $0 },
                at: .now,
                random: .random(in: 0...1)
            )
            try await handle(.disconnected(reason: end.reason, nextAttempt: pause))
            try await wait(pause, mayHurry: end.advice != .retryLater)
        }
    }

    private var hasNetwork: Bool {
        client.withMemory { $0.hasNetwork }
    }

    private mutating func next() async throws -> LineInput {
        guard let input = await iterator.next() else { throw CancellationError() }
        if case .news = input { news = client.takeNews() }
        return input
    }

    /// Waits for the time to connect again; less long when the network changes, unless the service asked for peace.
    private mutating func wait(_ pause: Duration, mayHurry: Bool) async throws {
        let (attempt, inputs) = (attempt, inputs)
        try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            func wake(after pause: Duration) {
                group.addTask {
                    try? await Task.sleep(for: pause, clock: .continuous)
                    inputs.yield(.pauseOver(attempt))
                }
            }
            wake(after: pause)
            var hurries = !mayHurry
            while true {
                switch try await next() {
                case .pauseOver(attempt): return
                case .news:
                    // Off, or on again.
                    if news.isSwitched { return }
                    if news.hasNetworkChange, !hurries {
                        hurries = true
                        wake(after: reconnection.hurriedPause(at: .now, random: .random(in: 0...1)))
                    }
                default: break
                }
            }
        }
    }

    /// One connection, from its first byte to its last.
    private mutating func connection(
        _ handle: (DeviceEvent) async throws -> Void
    ) async throws -> DeviceSession.End {
        let (attempt, inputs, client) = (attempt, inputs, client)
        return try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            let (permits, permit) = AsyncStream.makeStream(of: Void.self)
            group.addTask { await client.read(attempt, into: inputs, permits) }
            group.addTask {
                guard (try? await Task.sleep(for: client.configuration.connectTimeout)) != nil else { return }
                inputs.yield(.late(attempt))
            }
            var conversation = Conversation(client)
            while conversation.end == nil {
                switch try await next() {
                case .opened(attempt, let line):
                    client.setWatch(line.watch)
                    await conversation.begin(line)
                case .bytes(attempt, let bytes):
                    try await conversation.received(bytes, handle)
                    permit.yield()
                case .closed(attempt, let end):
                    conversation.closed(end)
                case .late(attempt):
                    conversation.isLate()
                case .news:
                    if hasNetwork {
                        try await conversation.tell(news, handle)
                    } else {
                        conversation.closed(DeviceClient.isOffline)
                    }
                default: break
                }
                if live == nil, let keepAlive = conversation.keepAlive, let watch = conversation.watch {
                    live = .now
                    let pulse = Pulse(
                        keepAlive: keepAlive,
                        answerTimeout: client.configuration.answerTimeout,
                        now: .now
                    )
                    group.addTask {
                        await watch.run(pulse) { client.note { $0.isTimeToRepeat = true } }
                    }
                }
            }
            return conversation.end ?? DeviceSession.End(advice: .retry, reason: "")
        }
    }
}
