import Synchronization

/// Work that has to wait (a read from the store, a registration), run in a task group that somebody waits for.
///
/// Event loops and locked sections cannot wait; they leave an errand. `run()` ends when it is cancelled or `finish()` is
/// called, after the errands that it has begun.
package final class Errands: Sendable {
    private let stream: AsyncStream<@Sendable () async -> Void>
    private let continuation: AsyncStream<@Sendable () async -> Void>.Continuation
    private let unfinished = Atomic<Int>(0)

    package init() {
        (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
    }

    /// How many errands were left and are not done.
    package var count: Int { unfinished.load(ordering: .acquiring) }

    /// Leaves an errand; the number left at one time is bounded by those who leave them, one or two for a connection.
    package func add(_ errand: @escaping @Sendable () async -> Void) {
        unfinished.wrappingAdd(1, ordering: .relaxed)
        continuation.yield(errand)
    }

    package func finish() {
        continuation.finish()
    }

    package func run() async {
        await withDiscardingTaskGroup { group in
            for await errand in stream {
                group.addTask {
                    await errand()
                    self.unfinished.wrappingSubtract(1, ordering: .releasing)
                }
            }
        }
    }
}
