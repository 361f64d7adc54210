import CoreMetrics
import HeraldModel
import Logging
import Synchronization

/// Claims rows, has those of one claim sent together, and writes their outcomes.
final class QueuePump: Sendable {
    /// State that the loop shares with the tasks that send.
    private struct Shared {
        /// Claimed rows without an outcome.
        var inFlight: Set<Int64> = []
        /// Outcomes that the loop has not taken yet.
        var outcomes: [RowOutcome] = []
    }

    /// State of the loop from one round to the next.
    private struct State {
        var unwritten: [RowOutcome] = []
        /// Processed rows whose outcome the database refused; they stay claimed until their lease ends.
        var unwritable: Set<Int64> = []
        /// Whether a claim failed that the database may have committed: the relay then owns rows that it does not know.
        var hasLostClaim = false
        var hasRoom = true
        var nextDue: WallTime?
        /// When to extend the claims of the rows in flight; a wall clock that is set back must not delay it.
        var extendAt = ContinuousClock.now
        /// When to use the database again after a failure.
        var retryStoreAt = ContinuousClock.now
        var storeFailures = 0
    }

    /// How long outcomes gather at most before they are written, while there is no room for a claim.
    private static let gathering = Duration.milliseconds(25)
    /// Pause for rows that are due and locked, and the shortest one after a failure of the database.
    private static let lockPause = Duration.milliseconds(100)

    private let context: RelayContext
    private let sender: RowSender
    private var deadTokens: DeadTokenMarker { sender.deadTokens }
    private let shared = Mutex(Shared())
    /// Wakes the loop when there is room for a claim, or no row is in flight.
    private let room = AsyncSignal()

    private var configuration: RelayConfiguration { context.configuration }
    private var clock: any WallClock { context.clock }
    private var inFlightCount: Int { shared.withLock { $0.inFlight.count } }

    /// Minimum room for a claim, which costs one commit whatever its size.
    private var leastRoom: Int { max(1, min(configuration.batch, configuration.window / 2)) }

    init(_ context: RelayContext, _ sender: RowSender) {
        self.context = context
        self.sender = sender
    }

    /// Runs until `isStopping`, and until the outcomes of all rows in flight are written.
    func run(isStopping: () -> Bool) async {
        var state = State()
        await withDiscardingTaskGroup { group in
            while true {
                let isStopping = isStopping() || Task.isCancelled
                // An outcome is recorded when its row leaves `inFlight`: if that is empty, the update below writes all.
                let isIdle = inFlightCount == 0
                // With many rows in flight more outcomes come at once, and one commit covers all of them.
                if inFlightCount > configuration.window - leastRoom, !isStopping {
                    await room.wait(atMost: Self.gathering)
                }
                let isBusy = await updateQueue(&state, &group, claims: !isStopping)
                if isStopping, isIdle, state.unwritten.isEmpty { return await releaseLostClaim(&state) }
                // Past the time limit for stopping, the relay that starts next looks up what was not written.
                if Task.isCancelled { return }
                await extend(&state)
                if isBusy { continue }
                await context.signal.wait(atMost: pause(state))
            }
        }
    }

    /// Writes the outcomes, and claims as many rows as there is room for, in one transaction.
    ///
    /// Outcomes that the database does not take stay, and no further row is claimed.
    /// - Returns: Whether more rows may be due now.
    private func updateQueue(_ state: inout State, _ group: inout DiscardingTaskGroup, claims: Bool) async -> Bool {
        let room = configuration.window - takeOutcomes(&state)
        state.hasRoom = room >= leastRoom
        guard ContinuousClock.now >= state.retryStoreAt else { return false }
        let claims = claims && state.hasRoom
        guard claims || !state.unwritten.isEmpty else { return false }
        do {
            await deadTokens.mark(state.unwritten.compactMap(\.deadToken))
            if claims {
                try await endLostClaim(&state)
                state.hasLostClaim = true
            }
            // Both may have waited for the database: a lease counts from its claim.
            let now = clock.now()
            let request = claims ? claim(min(room, configuration.batch), at: now) : nil
            let update = try await context.store.finish(
                state.unwritten,
                owner: context.owner,
                claiming: request
            )
            if claims { state.hasLostClaim = false }
            state.unwritten = []
            count(update.finished)
            storeWorks(&state)
            guard let request else { return false }
            start(update.claimed, &state, &group)
            if update.claimed.count == request.limit {
                state.nextDue = now
                return true
            }
            // A row that is due and was not claimed is locked by another program's transaction.
            state.nextDue = try await context.store.nextDue().map { max($0, now + Self.lockPause) }
        } catch let error as RelayStoreError
            where error.code == .failed && !state.unwritten.isEmpty && !Task.isCancelled
        {
            if await flushEach(&state) {
                storeWorks(&state)
                // The claim failed with the outcomes.
                return claims
            }
        } catch {
            storeFailed(error, &state)
        }
        return false
    }

    /// Moves the outcomes that are known by now to ``State/unwritten``.
    /// - Returns: The number of rows in flight.
    private func takeOutcomes(_ state: inout State) -> Int {
        let (outcomes, count) = shared.withLock { shared in
            defer { shared.outcomes.removeAll(keepingCapacity: true) }
            return (shared.outcomes, shared.inFlight.count)
        }
        state.unwritten += outcomes
        return count
    }

    private func claim(_ limit: Int, at now: WallTime) -> ClaimRequest {
        ClaimRequest(
            limit: limit,
            owner: context.owner,
            now: now,
            leaseEnd: now + configuration.lease,
            topic: RelayApp.onlyTopic(of: context.routes.all.map(\.app))
        )
    }

    private func start(_ rows: [QueueRow], _ state: inout State, _ group: inout DiscardingTaskGroup) {
        guard !rows.isEmpty else { return }
        state.unwritable.subtract(rows.map(\.id))
        shared.withLock { $0.inFlight.formUnion(rows.map(\.id)) }
        context.metrics.inFlight.record(inFlightCount)
        group.addTask { [self] in await sender.process(rows) { self.end($0, $1) } }
    }

    /// Releases the rows of a claim whose answer did not arrive, so that they are claimed again.
    ///
    /// Should the database commit the claim even later, its rows are free when their lease ends.
    private func endLostClaim(_ state: inout State) async throws {
        guard state.hasLostClaim else { return }
        var known = shared.withLock { $0.inFlight.union($0.outcomes.lazy.map(\.row)) }
        known.formUnion(state.unwritable)
        known.formUnion(state.unwritten.lazy.map(\.row))
        let count = try await context.store.release(except: Array(known), owner: context.owner)
        state.hasLostClaim = false
        guard count > 0 else { return }
        context.logger.notice("released rows whose claim was lost", metadata: ["rows": "\(count)"])
    }

    private func releaseLostClaim(_ state: inout State) async {
        do { try await endLostClaim(&state) } catch { storeFailed(error, &state) }
    }

    /// Notes that a row is processed.
    private func end(_ row: QueueRow, _ outcome: RowOutcome?) {
        let (isFirst, left) = shared.withLock { shared in
            shared.inFlight.remove(row.id)
            guard let outcome else { return (true, shared.inFlight.count) }
            shared.outcomes.append(outcome)
            return (shared.outcomes.count == 1, shared.inFlight.count)
        }
        context.metrics.inFlight.record(left)
        if left == 0 || left == configuration.window - leastRoom { room.notify() }
        // The loop may have read the outcomes before there was room for a claim.
        if isFirst || left == 0 || left == configuration.window - leastRoom { context.signal.notify() }
    }

    private func count(_ rows: [FinishedRow]) {
        for row in rows { context.metrics.count(row.status) }
    }

    /// Writes outcomes one by one after a batch failed, so that one row, for example with a trigger of another program,
    /// delays no other.
    /// - Returns: Whether the database works.
    private func flushEach(_ state: inout State) async -> Bool {
        while let outcome = state.unwritten.first {
            do {
                count(try await context.store.finish([outcome], owner: context.owner, claiming: nil).finished)
            } catch let error as RelayStoreError where error.code == .failed {
                // Its claim expires. The row is then processed again, as one that may have been sent.
                state.unwritable.insert(outcome.row)
                context.metrics.storeFailures.increment()
                context.logger.error(
                    "cannot write the outcome of a row",
                    metadata: ["row": "\(outcome.row)", "error": "\(error)"]
                )
            } catch {
                storeFailed(error, &state)
                return false
            }
            state.unwritten.removeFirst()
        }
        return true
    }

    /// Extends the claims of the rows in flight.
    private func extend(_ state: inout State) async {
        let start = ContinuousClock.now
        guard inFlightCount > 0 || !state.unwritten.isEmpty, start >= state.extendAt else { return }
        do {
            let rows = shared.withLock { Array($0.inFlight) } + state.unwritten.map(\.row)
            try await context.store.extend(rows, owner: context.owner, until: clock.now() + configuration.lease)
            state.extendAt = start + configuration.lease / 3
        } catch {
            storeFailed(error, &state)
        }
    }

    /// Time until the next timer.
    private func pause(_ state: State) -> Duration {
        // If its time has come since it was last compared, nothing else wakes the pump for the next try.
        if state.storeFailures > 0 { return max(state.retryStoreAt - .now, Self.lockPause) }
        let now = clock.now()
        var next = now + .seconds(30)
        if inFlightCount > 0 || !state.unwritten.isEmpty { next = min(next, now + configuration.lease / 3) }
        if let due = state.nextDue, state.hasRoom { next = min(next, due) }
        return max(next - now, .milliseconds(1))
    }

    private func storeWorks(_ state: inout State) {
        guard state.storeFailures > 0 else { return }
        state.storeFailures = 0
        context.health.storeFailure(nil)
        context.logger.notice("the queue's database works again")
    }

    private func storeFailed(_ error: any Error, _ state: inout State) {
        // A shutdown is not a failure, whatever a database says of it.
        guard !Task.isCancelled else { return }
        state.storeFailures += 1
        var backOff = RetryBackOff()
        backOff.firstPause = .milliseconds(200)
        backOff.longestPause = .seconds(15)
        state.retryStoreAt = .now + backOff.pause(after: state.storeFailures, share: .random(in: 0...1))
        context.health.storeFailure("\(error)")
        context.metrics.storeFailures.increment()
        if state.storeFailures == 1 || state.storeFailures.isMultiple(of: 20) {
            context.logger.error("the queue's database does not work", metadata: ["error": "\(error)"])
        }
    }
}
