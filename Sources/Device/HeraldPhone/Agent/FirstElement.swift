extension AsyncStream where Element: Sendable {
    /// The first element; nil if the stream ends before, or none comes within the time.
    package func first(within time: Duration) async -> Element? {
        await withTaskGroup(of: Element?.self) { group in
            group.addTask { await first { _ in true } }
            group.addTask {
                try? await Task.sleep(for: time)
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
    }
}
