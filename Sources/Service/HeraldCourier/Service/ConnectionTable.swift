import Synchronization

/// The connections of this node.
final class ConnectionTable: Sendable {
    private struct State {
        var links: [ObjectIdentifier: MQTTConnectionLink] = [:]
        var whenEmpty: [AsyncStream<Void>.Continuation] = []
    }

    private let state = Mutex(State())

    func add(_ link: MQTTConnectionLink) {
        state.withLock { $0.links[ObjectIdentifier(link)] = link }
    }

    func remove(_ link: MQTTConnectionLink) {
        let continuations = state.withLock { state in
            state.links[ObjectIdentifier(link)] = nil
            guard state.links.isEmpty else { return [AsyncStream<Void>.Continuation]() }
            defer { state.whenEmpty = [] }
            return state.whenEmpty
        }
        for continuation in continuations { continuation.finish() }
    }

    var links: [MQTTConnectionLink] {
        state.withLock { Array($0.links.values) }
    }

    /// Returns when there is no connection, or when cancelled.
    func untilEmpty() async {
        let (stream, continuation) = AsyncStream<Void>.makeStream()
        let isEmpty = state.withLock { state in
            if !state.links.isEmpty { state.whenEmpty.append(continuation) }
            return state.links.isEmpty
        }
        guard !isEmpty else { return }
        for await _ in stream {}
    }
}
