import HeraldDevice
import HeraldModel
import HeraldPhone
import Synchronization

/// The tokens and notifications that have come to a device, for those who wait for them.
final class DeviceArrivals: Sendable {
    private struct State {
        var tokens: [Topic: DeviceToken] = [:]
        var refusals: [Topic: String] = [:]
        var records: [DisplayRecord] = []
        /// The records that no call has returned.
        var fresh: [DisplayRecord] = []
        /// Why nothing comes any more.
        var end: String?
        var lastWaiter = 0
        var waiters: [Int: AsyncStream<Void>.Continuation] = [:]
    }

    private let state = Mutex(State())

    var records: [DisplayRecord] { state.withLock { $0.records } }

    func take(_ event: AgentEvent) {
        change { state in
            switch event {
            case .connection(.token(let token, for: let topic)): state.tokens[topic] = token
            case .connection(.appRefused(let topic, let reason)): state.refusals[topic] = reason
            case .notification(_, .some(let record), isRepeated: false), .presented(let record), .local(let record):
                state.records.append(record)
                state.fresh.append(record)
            case .connection, .notification, .question, .fault: break
            }
        }
    }

    /// Fails everything that waits, now and later.
    func fail(_ words: String) {
        change { $0.end = words }
    }

    /// - Throws: ``HeraldTestError`` if the service refuses the app, or the token does not come in time.
    func token(of topic: Topic, within time: Duration) async throws -> DeviceToken {
        try await first("device token for \(topic)", within: time) { state in
            if let reason = state.refusals[topic] {
                throw HeraldTestError("the service does not register \(topic): \(reason)")
            }
            return state.tokens[topic]
        }
    }

    /// - Throws: ``HeraldTestError`` if none comes in time.
    func next(for topic: String?, within time: Duration) async throws -> DisplayRecord {
        try await first(topic.map { "notification for \($0)" } ?? "notification", within: time) { state in
            guard let index = state.fresh.firstIndex(where: { topic == nil || $0.topic.name == topic }) else {
                return nil
            }
            return state.fresh.remove(at: index)
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let waiters = state.withLock { state in
            body(&state)
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.yield() }
    }

    /// The first value that `find` returns, now or after a change.
    private func first<Value: Sendable>(
        _ what: String,
        within time: Duration,
        _ find: @escaping @Sendable (inout State) throws -> Value?
    ) async throws -> Value {
        let (changes, waiter) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state in
            state.lastWaiter += 1
            state.waiters[state.lastWaiter] = waiter
            return state.lastWaiter
        }
        defer { state.withLock { _ = $0.waiters.removeValue(forKey: number) } }
        // It may be there already.
        waiter.yield()
        let found = try await withThrowingTaskGroup(of: Value?.self) { group in
            defer { group.cancelAll() }
            group.addTask {
                for await _ in changes {
                    if let value = try self.state.withLock({ try find(&$0) }) { return value }
                    if let end = self.state.withLock({ $0.end }) { throw HeraldTestError(end) }
                }
                return nil
            }
            group.addTask {
                try? await Task.sleep(for: time)
                return nil
            }
            return try await group.next() ?? nil
        }
        try Task.checkCancellation()
        guard let found else { throw HeraldTestError("no \(what) came within \(time)", isTimeout: true) }
        return found
    }
}
