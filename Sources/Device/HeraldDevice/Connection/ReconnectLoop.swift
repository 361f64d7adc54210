import HeraldModel
import NIOCore

/// The run of a client: one task that gets all inputs in order and owns the state.
///
/// Other tasks only wait: for bytes, for a time, for network changes.
struct ReconnectLoop {
    private let client: DeviceClient
    private var iterator: AsyncStream<ConnectionInput>.Iterator
    private let inputs: AsyncStream<ConnectionInput>.Continuation
    private var reconnection: ReconnectionPolicy
    private var attempt = 0
    /// The address of the attempt, counted from the preferred one.
    private var place = 0
    /// The changes of the last input.
    private var changes = PendingChanges()
    /// The time of CONNACK on the current connection.
    private var live: ContinuousClock.Instant?

    init(
        _ client: DeviceClient,
        _ iterator: AsyncStream<ConnectionInput>.Iterator,
        _ inputs: AsyncStream<ConnectionInput>.Continuation
    ) {
        self.client = client
        self.iterator = iterator
        self.inputs = inputs
        reconnection = ReconnectionPolicy(client.configuration.reconnection, now: .now)
    }

    mutating func run(_ handle: (DeviceEvent) async throws -> Void) async throws {
        while true {
            try Task.checkCancellation()
            if !hasNetwork {
                try await handle(.disconnected(reason: DeviceClient.networkOff, nextAttempt: nil))
                while !hasNetwork { _ = try await next() }
            }
            attempt += 1
            live = nil
            reconnection.attempt(at: .now)
            let end = try await connection(handle)
            client.setWatchdog(nil)
            place = nextPlace(after: end)
            try Task.checkCancellation()
            if end.advice == .dismissed { throw DeviceError(.dismissed, end.reason) }
            guard end.advice != .giveUp else { throw DeviceError(.refused, end.reason) }
            guard hasNetwork else { continue }
            // Its addresses may all be of yesterday, while an activation listener still answers at one of them.
            let isRoundOver = live == nil && place.isMultiple(of: client.addresses.count)
            if end.isUntrusted || isRoundOver, let event = try await client.askForAnnouncement() {
                place = 0
                try await handle(event)
            }
            let pause = reconnection.pause(
                after: end.advice,
                lived: live.map { .now - $0 },
                at: .now,
                random: .random(in: 0...1)
            )
            try await handle(.disconnected(reason: end.reason, nextAttempt: pause))
            try await wait(pause, mayHurry: end.advice == .retry)
        }
    }

    /// The address of the next attempt: the preferred one after a connection that worked, else the next, or the one to which
    /// the service sends the device.
    ///
    /// The device follows only to an address that the service has announced: its certificate alone cannot move a device.
    private func nextPlace(after end: DeviceSession.End) -> Int {
        if let reference = end.reference.flatMap({ HostPort($0, defaultPort: 5223) }),
            let announced = client.addresses.firstIndex(of: reference)
        {
            return announced
        }
        return live == nil ? place + 1 : 0
    }

    private var hasNetwork: Bool {
        client.withMemory { $0.hasNetwork }
    }

    private mutating func next() async throws -> ConnectionInput {
        guard let input = await iterator.next() else { throw CancellationError() }
        if case .changes = input { changes = client.takeChanges() }
        return input
    }

    /// Waits until the next attempt; a network change shortens the pause, unless the service demanded it.
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
                case .changes:
                    // The network was switched off, or on again.
                    if changes.hasNetworkSwitch { return }
                    if changes.hasNetworkChange, !hurries {
                        hurries = true
                        wake(after: reconnection.hurriedPause(at: .now, random: .random(in: 0...1)))
                    }
                default: break
                }
            }
        }
    }

    /// Runs one connection to its end.
    private mutating func connection(
        _ handle: (DeviceEvent) async throws -> Void
    ) async throws -> DeviceSession.End {
        let (attempt, inputs, client, connector) = (attempt, inputs, client, client.connector(place))
        return try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            let (permits, permit) = AsyncStream.makeStream(of: Void.self)
            group.addTask { await connector.read(attempt, into: inputs, permits) }
            group.addTask {
                guard (try? await Task.sleep(for: client.configuration.connectTimeout)) != nil else { return }
                inputs.yield(.connectTimeout(attempt))
            }
            var driver = SessionDriver(client)
            while driver.end == nil {
                switch try await next() {
                case .opened(attempt, let connection):
                    client.setWatchdog(connection.watchdog)
                    await driver.begin(connection)
                case .bytes(attempt, let bytes):
                    try await driver.received(bytes, handle)
                    permit.yield()
                case .closed(attempt, let end):
                    driver.closed(end)
                case .connectTimeout(attempt):
                    driver.connectTimeoutPassed()
                case .changes:
                    if hasNetwork {
                        try await driver.take(changes, handle)
                    } else {
                        driver.closed(DeviceClient.networkOff)
                    }
                default: break
                }
                if live == nil, let keepAlive = driver.keepAlive, let watchdog = driver.watchdog {
                    live = .now
                    let monitor = KeepAliveMonitor(
                        keepAlive: keepAlive,
                        answerTimeout: client.configuration.answerTimeout,
                        now: .now
                    )
                    group.addTask {
                        await watchdog.run(monitor) { client.note { $0.isRetryDue = true } }
                    }
                }
            }
            let end = driver.end ?? DeviceSession.End(advice: .retry, reason: "")
            return client.context === connector.context ? end : end.withNextCredential
        }
    }
}
