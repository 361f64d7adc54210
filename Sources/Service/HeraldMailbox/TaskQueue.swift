/// Runs asynchronous work for callers that cannot wait: event loops and locked sections.
///
/// `run()` ends when it is cancelled or `finish()` is called, after the tasks that it has begun.
package final class TaskQueue: Sendable {
    private let stream: AsyncStream<@Sendable () async -> Void>
    private let continuation: AsyncStream<@Sendable () async -> Void>.Continuation

    package init() {
        (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
    }

    /// Adds a task; callers bound the number to one or two for each connection.
    package func add(_ task: @escaping @Sendable () async -> Void) {
        continuation.yield(task)
    }

    package func finish() {
        continuation.finish()
    }

    package func run() async {
        await withDiscardingTaskGroup { group in
            for await task in stream {
                group.addTask { await task() }
            }
        }
    }
}
