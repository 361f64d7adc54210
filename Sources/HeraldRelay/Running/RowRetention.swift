import CoreMetrics
import HeraldModel
import Logging

/// Deletes final rows by age, a few at a time.
struct RowRetention: Sendable {
    /// Interval between two passes over the queue.
    private static let pause = Duration.seconds(3600)
    /// Interval between two batches, in which other programs can write.
    private static let batchPause = Duration.milliseconds(50)

    private let context: RelayContext

    init(_ context: RelayContext) {
        self.context = context
    }

    func run() async {
        while !Task.isCancelled {
            await pass(context.configuration.keepSent, [.sent])
            await pass(context.configuration.keepUnsent, [.refused, .expired, .failed])
            guard (try? await Task.sleep(for: Self.pause)) != nil else { return }
        }
    }

    /// Deletes the rows of these statuses that ended longer ago; keeps all if `age` is zero.
    private func pass(_ age: Duration, _ statuses: [FinalStatus]) async {
        guard age > .zero else { return }
        var last: Int64? = .min
        var total = 0
        do {
            while let after = last, !Task.isCancelled {
                let end = context.clock.now() - age
                let batch = try await context.store.deleteOld(statuses, endedBefore: end, after: after)
                last = batch.last
                total += batch.deleted
                context.metrics.deleted.increment(by: batch.deleted)
                if batch.deleted > 0 { try await Task.sleep(for: Self.batchPause) }
            }
        } catch is CancellationError {
            // The relay stops.
        } catch {
            context.logger.warning(
                "old rows are not deleted; the relay's user needs the right to DELETE from push_queue",
                metadata: ["error": "\(error)"]
            )
        }
        if total > 0 { context.logger.info("old rows deleted", metadata: ["rows": "\(total)"]) }
    }
}
