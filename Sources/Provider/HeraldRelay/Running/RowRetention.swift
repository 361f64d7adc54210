import CoreMetrics
import HeraldModel
import Logging

/// Deletes final rows by age, a few at a time.
struct RowRetention: Sendable {
    /// Interval between two passes over the queue.
    private static let pause = Duration.seconds(3600)
    /// Interval after a failure of the database.
    private static let failurePause = Duration.seconds(60)
    /// Interval between two pages, in which other programs can write.
    private static let batchPause = Duration.milliseconds(50)

    let context: RelayContext

    func run() async {
        while !Task.isCancelled {
            var isDone = await pass(context.configuration.keepSent, [.sent])
            isDone = await pass(context.configuration.keepUnsent, [.refused, .expired, .failed]) && isDone
            guard (try? await Task.sleep(for: isDone ? Self.pause : Self.failurePause)) != nil else { return }
        }
    }

    /// Deletes the rows of these statuses that ended longer ago; keeps all if `age` is zero.
    /// - Returns: False if the database failed, and a retry may help.
    private func pass(_ age: Duration, _ statuses: [FinalStatus]) async -> Bool {
        guard age > .zero else { return true }
        var last: Int64? = .min
        var total = 0
        var isDone = true
        do {
            while let after = last, !Task.isCancelled {
                let end = context.clock.now() - age
                let batch = try await context.store.deleteOld(statuses, endedBefore: end, after: after)
                last = batch.last
                total += batch.deleted
                context.metrics.deleted.increment(by: batch.deleted)
                if last != nil { try await Task.sleep(for: Self.batchPause) }
            }
        } catch is CancellationError {
            // The relay stops.
        } catch let error as RelayStoreError where error.isDenied {
            context.logger.warning(
                "old rows are not deleted; the relay's user needs the right to DELETE from push_queue",
                metadata: ["error": "\(error)"]
            )
        } catch {
            isDone = false
            // A shutdown is not a failure.
            if !Task.isCancelled {
                context.logger.warning(
                    "old rows are not deleted; the relay tries again in a minute",
                    metadata: ["error": "\(error)"]
                )
            }
        }
        if total > 0 { context.logger.info("old rows deleted", metadata: ["rows": "\(total)"]) }
        return isDone
    }
}
