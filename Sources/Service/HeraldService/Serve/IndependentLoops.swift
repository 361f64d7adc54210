/// Repeats tasks until the surrounding task is cancelled, each in a loop of its own: one that hangs delays no other.
enum IndependentLoops {
    /// `pause` is the time between the end of a task and its next start.
    static func run(pause: Duration, _ tasks: [@Sendable () async -> Void]) async {
        await withTaskGroup { group in
            for task in tasks {
                group.addTask {
                    while !Task.isCancelled {
                        await task()
                        do { try await Task.sleep(for: pause) } catch { return }
                    }
                }
            }
        }
    }
}
