import CoreMetrics
import HeraldModel
import Logging
import Synchronization

/// Claims rows, has each one sent in a task of its own, and writes their outcomes.
final class QueuePump: Sendable {
    /// State of the loop from one round to the next.
    private struct State {
        var unwritten: [RowOutcome] = []
        /// Processed rows whose outcome the database refused; they stay claimed until their lease ends.
        var unwritable: Set<Int64> = []
        /// Whether a claim failed that the database may have committed: the relay then owns rows that it does not know.
        var hasLostClaim = false
        var hasRoom = true
        var nextDue: WallTime?
        var extendAt = WallTime(milliseconds: 0)
        /// When to use the database again after a failure.
        var retryStoreAt = WallTime(milliseconds: 0)
        var storeFailures = 0
    }

    /// How long outcomes gather before they are written.
    private static let gathering = Duration.milliseconds(5)
    /// Pause for rows that are due and locked, and the shortest one after a failure of the database.
    private static let lockPause = Duration.milliseconds(100)

    private let context: RelayContext
    private let sender: RowSender
    private let outcomes = Mutex<[RowOutcome]>([])
    /// Claimed rows whose outcome is not in ``outcomes`` yet.
    private let inFlight = Mutex<Set<Int64>>([])

    private var configuration: RelayConfiguration { context.configuration }
    private var clock: any WallClock { context.clock }
    private var inFlightCount: Int { inFlight.withLock { $0.count } }

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
                // An outcome is recorded before its row leaves `inFlight`: if that is empty, the flush below writes all.
                let isIdle = inFlightCount == 0
                // With many rows in flight more outcomes come at once, and one commit covers all of them.
                if inFlightCount > leastRoom, !isStopping { try? await Task.sleep(for: Self.gathering) }
                await flush(&state)
                if isStopping, isIdle, state.unwritten.isEmpty { return await releaseLostClaim(&state) }
                // Past the time limit for stopping, the relay that starts next looks up what was not written.
                if Task.isCancelled { return }
                await extend(&state)
                var isBusy = false
                if !isStopping, state.unwritten.isEmpty { isBusy = await claim(&state, &group) }
                if isBusy { continue }
                await context.signal.wait(atMost: pause(state))
            }
        }
    }

    /// Claims rows, as many as there is room for.
    /// - Returns: Whether more may be due now.
    private func claim(_ state: inout State, _ group: inout DiscardingTaskGroup) async -> Bool {
        let room = configuration.window - inFlightCount
        state.hasRoom = room >= leastRoom
        let now = clock.now()
        guard state.hasRoom, now >= state.retryStoreAt else { return false }
        let limit = min(room, configuration.batch)
        do {
            let request = ClaimRequest(
                limit: limit,
                owner: context.owner,
                now: now,
                leaseEnd: now + configuration.lease,
                topic: RelayApp.onlyTopic(of: context.routes.table.routes.map(\.app))
            )
            try await endLostClaim(&state)
            state.hasLostClaim = true
            let rows = try await context.store.claim(request)
            state.hasLostClaim = false
            storeWorks(&state)
            state.unwritable.subtract(rows.map(\.id))
            inFlight.withLock { $0.formUnion(rows.map(\.id)) }
            context.metrics.inFlight.record(inFlightCount)
            for row in rows {
                group.addTask { [self] in await process(row) }
            }
            if rows.count == limit {
                state.nextDue = now
                return true
            }
            // A row that is due and was not claimed is locked by another program's transaction.
            state.nextDue = try await context.store.nextDue().map { max($0, now + Self.lockPause) }
            return false
        } catch {
            storeFailed(error, &state)
            return false
        }
    }

    /// Releases the rows of a claim whose answer did not arrive, so that they are claimed again.
    ///
    /// Should the database commit the claim even later, its rows are free when their lease ends.
    private func endLostClaim(_ state: inout State) async throws {
        guard state.hasLostClaim else { return }
        // An outcome is recorded before its row leaves `inFlight`: every row is found in one of them.
        var known = state.unwritable.union(inFlight.withLock { $0 })
        known.formUnion(outcomes.withLock { $0.map(\.row) })
        known.formUnion(state.unwritten.map(\.row))
        let count = try await context.store.release(except: Array(known), owner: context.owner)
        state.hasLostClaim = false
        guard count > 0 else { return }
        context.logger.notice("released rows whose claim was lost", metadata: ["rows": "\(count)"])
    }

    private func releaseLostClaim(_ state: inout State) async {
        do { try await endLostClaim(&state) } catch { storeFailed(error, &state) }
    }

    private func process(_ row: QueueRow) async {
        let outcome = await sender.process(row)
        var isFirst = false
        if let outcome {
            isFirst = outcomes.withLock { outcomes in
                outcomes.append(outcome)
                return outcomes.count == 1
            }
        }
        let left = inFlight.withLock { rows in
            rows.remove(row.id)
            return rows.count
        }
        // The pump may have read the outcomes before there was room for a claim.
        let isAwaited = left == 0 || left == configuration.window - leastRoom
        if isFirst || outcome == nil || isAwaited { context.signal.notify() }
    }

    /// Writes the outcomes; those that the database does not take stay, and no further row is claimed.
    private func flush(_ state: inout State) async {
        state.unwritten += outcomes.withLock { outcomes in
            defer { outcomes.removeAll(keepingCapacity: true) }
            return outcomes
        }
        guard !state.unwritten.isEmpty, clock.now() >= state.retryStoreAt else { return }
        do {
            try await write(state.unwritten)
            state.unwritten = []
        } catch let error as RelayStoreError where error.code == .failed {
            guard await flushEach(&state) else { return }
        } catch {
            return storeFailed(error, &state)
        }
        storeWorks(&state)
    }

    private func write(_ outcomes: [RowOutcome]) async throws {
        for row in try await context.store.finish(outcomes, owner: context.owner) { context.metrics.count(row.status) }
    }

    /// Writes outcomes one by one after a batch failed, so that one row, for example with a trigger of another program,
    /// delays no other.
    /// - Returns: Whether the database works.
    private func flushEach(_ state: inout State) async -> Bool {
        while let outcome = state.unwritten.first {
            do {
                try await write([outcome])
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
        let now = clock.now()
        guard inFlightCount > 0 || !state.unwritten.isEmpty, now >= state.extendAt else { return }
        do {
            let rows = inFlight.withLock { Array($0) } + state.unwritten.map(\.row)
            try await context.store.extend(rows, owner: context.owner, until: now + configuration.lease)
            state.extendAt = now + configuration.lease / 3
        } catch {
            storeFailed(error, &state)
        }
    }

    /// Time until the next timer.
    private func pause(_ state: State) -> Duration {
        let now = clock.now()
        // If its time has come since it was last compared, nothing else wakes the pump for the next try.
        if state.storeFailures > 0 { return max(state.retryStoreAt - now, Self.lockPause) }
        var next = now + .seconds(30)
        if inFlightCount > 0 || !state.unwritten.isEmpty { next = min(next, now + configuration.lease / 3) }
        if let due = state.nextDue, state.hasRoom { next = min(next, due) }
        return max(next - now, .milliseconds(1))
    }

    private func storeWorks(_ state: inout State) {
        guard state.storeFailures > 0 else { return }
        state.storeFailures = 0
        state.retryStoreAt = WallTime(milliseconds: 0)
        context.health.storeFailure(nil)
        context.logger.notice("the queue's database works again")
    }

    private func storeFailed(_ error: any Error, _ state: inout State) {
        state.storeFailures += 1
        var backOff = RetryBackOff()
        backOff.firstPause = .milliseconds(200)
        backOff.longestPause = .seconds(15)
        state.retryStoreAt = clock.now() + backOff.pause(after: state.storeFailures, share: .random(in: 0...1))
        context.health.storeFailure("\(error)")
        context.metrics.storeFailures.increment()
        if state.storeFailures == 1 || state.storeFailures.isMultiple(of: 20) {
            context.logger.error("the queue's database does not work", metadata: ["error": "\(error)"])
        }
    }
}
