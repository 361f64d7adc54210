import HeraldWeb

/// Admission of searches: limits those that run and those that wait, because devices use the same readers of the store.
actor SearchTurns {
    static let running = 2
    static let waiting = 6

    private var active = 0
    private var queue: [CheckedContinuation<Void, Never>] = []

    /// Runs a search when it is its turn.
    /// - Throws: ``HeraldWeb/WebRefusal`` 503 if too many wait, and errors of the search.
    func run<Value: Sendable>(_ search: @Sendable () async throws -> Value) async throws -> Value {
        try await begin()
        defer { end() }
        try Task.checkCancellation()
        return try await search()
    }

    private func begin() async throws {
        if active < SearchTurns.running {
            active += 1
            return
        }
        guard queue.count < SearchTurns.waiting else {
            let most = SearchTurns.running + SearchTurns.waiting
            throw WebRefusal(503, "\(most) searches run or wait already: try again")
        }
        // The one that ends passes its turn on.
        await withCheckedContinuation { queue.append($0) }
    }

    private func end() {
        if queue.isEmpty { active -= 1 } else { queue.removeFirst().resume() }
    }
}
