import HeraldModel
import Logging

/// Checks the state of the queue at intervals, for health and metrics.
struct QueueMonitor: Sendable {
    /// Length of the pause after a check that took long, as a multiple of the check; a failed one is repeated soon.
    ///
    /// A check reads the whole queue, and other statements wait for it.
    private static let pauseFactor = 9

    let context: RelayContext
    let deadTokens: DeadTokenMarker

    func run() async {
        var last: Int64 = 0
        while !Task.isCancelled {
            let start = ContinuousClock.now
            var isFailed = false
            do {
                try await check()
                try await settleAbandoned(&last)
            } catch {
                isFailed = true
                noteFailure(error)
            }
            let pause = pause(after: start.duration(to: .now), isFailed: isFailed)
            guard (try? await Task.sleep(for: pause)) != nil else { return }
        }
    }

    /// Pause after a check that took so long.
    func pause(after check: Duration, isFailed: Bool) -> Duration {
        let shortest = context.configuration.progressPause
        return isFailed ? shortest : max(shortest, check * Self.pauseFactor)
    }

    /// Checks the queue; a failure goes to health.
    func checkOnce() async {
        do { try await check() } catch { noteFailure(error) }
    }

    private func noteFailure(_ error: any Error) {
        // A shutdown is not a failure.
        if !Task.isCancelled { context.health.checkFailure("\(error)") }
    }

    private func check() async throws {
        let known = deadTokens.stored
        let progress = try await context.store.progress(at: context.clock.now())
        try await deadTokens.reconcile(progress.breakers, known: known)
        let routes = context.routes.all
        context.health.update(
            progress,
            problems: routes.flatMap(\.credentialProblems),
            warnings: routes.compactMap(\.problem) + routes.compactMap(\.journalProblem)
        )
        context.metrics.show(progress)
    }

    /// Finishes rows for many tokens whose remaining parts another program deleted.
    private func settleAbandoned(_ last: inout Int64) async throws {
        let (finished, next) = try await context.store.settle(after: last)
        last = next ?? 0
        for row in finished {
            context.metrics.count(row.status)
            context.logger.notice(
                "push",
                metadata: ["row": "\(row.row)", "outcome": "\(row.status.rawValue)", "reason": "parts were deleted"]
            )
        }
    }
}
