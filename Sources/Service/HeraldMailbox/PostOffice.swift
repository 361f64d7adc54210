import CoreMetrics
package import HeraldModel
package import Logging
import Synchronization

/// Takes notifications from providers, hands them to connected devices, and keeps what waits.
///
/// 1. Asks the ``DeliveryShard`` of the device for a decision and performs its effects under the shard's lock. So the events
///    of one slot happen in one order. No effect waits.
/// 2. Ticks the acknowledgement grace, while a delivery waits for its acknowledgement.
/// 3. Reads stored notifications for connections.
/// 4. Releases holds that are over, while there are holds.
/// 5. Sweeps what expired, and trims the journal.
package final class PostOffice: Sendable {
    final class Shard: Sendable {
        let state: Mutex<DeliveryShard>

        init(_ configuration: PostOfficeConfiguration) {
            state = Mutex(DeliveryShard(configuration))
        }
    }

    package typealias Store = MailboxStore & JournalStore & FeedbackStore

    let configuration: PostOfficeConfiguration
    private let terms: Mutex<StorageTerms>
    let clock: any WallClock
    let store: any Store
    private let directory: any ConnectionDirectory
    private let logger: Logger
    let shards: [Shard]
    private let metrics = PostOfficeMetrics()
    /// Sent when the first delivery waits for its acknowledgement, and when the first notification is held.
    private let graceBegan = Signal()
    private let holdBegan = Signal()
    let load: PostOfficeLoad
    let records: (feedback: FeedbackRecorder, refusals: RefusalJournal)
    /// Nil for a node that stands alone.
    let confirmations: RefusalConfirmations?

    package init(
        configuration: PostOfficeConfiguration = PostOfficeConfiguration(),
        clock: any WallClock,
        store: any Store,
        directory: any ConnectionDirectory,
        confirmations: RefusalConfirmations? = nil,
        logger: Logger
    ) {
        self.configuration = configuration
        self.confirmations = confirmations
        terms = Mutex(configuration.terms)
        self.clock = clock
        self.store = store
        self.directory = directory
        self.logger = logger
        var count: UInt64 = 1
        while count < configuration.shardCount { count *= 2 }
        shards = (0..<count).map { _ in Shard(configuration) }
        load = PostOfficeLoad(
            EnvelopeMemory(limit: configuration.notificationBytes),
            Overload(clock: clock, logger: logger)
        )
        records = (
            FeedbackRecorder(store: store, logger: logger),
            RefusalJournal(store: store, burst: configuration.refusalBurst, perSecond: configuration.refusalRate)
        )
    }

    /// The longest storage of a notification; the listeners limit `apns-expiration` to it.
    package var longestStorage: Duration { terms.withLock { $0.longestStorage } }

    /// Changes the retention of notifications and journal.
    package func replaceTerms(_ terms: StorageTerms) {
        self.terms.withLock { $0 = terms }
    }

    // MARK: - For the gateway

    /// Whether notifications are accepted: the store takes more, and there is memory.
    package var isAccepting: Bool { store.isAccepting && !memory.isFull }

    /// Accepts a notification, without waiting; an envelope whose decision is `.pending` is settled exactly once.
    package func post(_ envelope: Envelope) -> PostDecision {
        let decision = confirmFirst(envelope) { $0.decide(envelope) } ?? decide(envelope)
        guard case .refused = decision else {
            metrics.received.increment()
            return decision
        }
        let confirmed = confirm(decision, envelope) { $0.decide(envelope) }
        if case .refused = confirmed { metrics.refused.increment() } else { metrics.received.increment() }
        return confirmed
    }

    private func decide(_ envelope: Envelope) -> PostDecision {
        let device = envelope.notification.slot.device
        guard hasRoom(for: device) else { return .refused(.serviceUnavailable, since: nil) }
        let isMemoryShort = memory.isHigh
        let (decision, wakesTick) = at(device) { shard in
            let wasWaiting = shard.isAwaitingAcknowledgements
            shard.holdRules.isMemoryShort = isMemoryShort
            let decision = shard.post(envelope, isHeldElsewhere: directory.isHeldElsewhere(device))
            return (decision, !wasWaiting && shard.isAwaitingAcknowledgements)
        }
        if wakesTick { graceBegan.send() }
        return decision
    }

    /// Records a notification that no app could read, and nothing else.
    package func discard(_ envelope: Envelope, as state: JournalState) -> PostDecision {
        let decide: @Sendable (PostOffice) -> PostDecision = { postOffice in
            let device = envelope.notification.slot.device
            guard postOffice.hasRoom(for: device) else { return .refused(.serviceUnavailable, since: nil) }
            return postOffice.at(device) { $0.post(envelope, discarded: state) }
        }
        return confirm(confirmFirst(envelope, decide) ?? decide(self), envelope, decide)
    }

    /// Puts the token of a removed app on the feedback list.
    func noteDeadToken(_ decision: PostDecision, _ envelope: Envelope) {
        let (slot, time) = (envelope.notification.slot, envelope.notification.received)
        guard case .refused(.unregistered, _) = decision, registration(slot)?.isLive == false else { return }
        records.feedback.add(FeedbackRecord(slot: slot, generation: envelope.generation, time: time))
    }

    /// Records a line about a notification that was posted.
    package func record(_ state: JournalState, about notification: Notification) {
        store.record([JournalEvent(state, notification, at: clock.now())])
    }

    /// Records the line of a refused request, unless there are too many; the line is made only if it is recorded.
    package func refuse(at now: WallTime, _ line: () -> JournalEvent) {
        records.refusals.record(at: now, line)
    }

    // MARK: - For the courier

    /// Attaches a connection of a device; the newer of two takes over.
    package func attach(_ device: DeviceNumber, link: any DeviceLink, isSavingPower: Bool, fence: UInt64) {
        at(device) { $0.attach(device, link: link, isSavingPower: isSavingPower, fence: fence) }
        // A claim that was seen before found no connection to end.
        if !directory.holds(device, fence: fence) { letGo(device, fence: fence) }
    }

    /// Detaches a connection that is gone: what it has not acknowledged waits in the store.
    package func detach(_ device: DeviceNumber, fence: UInt64) {
        at(device) { $0.detach(device, fence: fence) }
        directory.release(device, fence: fence)
    }

    /// Subscribes a connection to apps: what waits is delivered first.
    package func open(_ apps: [AppSubscription], on device: DeviceNumber, fence: UInt64) {
        at(device) { $0.open(apps, on: device, fence: fence) }
    }

    /// Ends a connection's subscription to an app, or with `awaitsToken` suspends it until the device presents the app's token.
    package func close(_ slot: Slot, fence: UInt64, awaitsToken: Bool = false) {
        at(slot.device) { $0.close(slot, fence: fence, awaitsToken: awaitsToken) }
    }

    /// Ends a delivery that the courier has finished.
    package func finished(_ slot: Slot, fence: UInt64, delivery: DeliveryNumber, result: DeliveryResult) {
        at(slot.device) { $0.finished(slot, fence: fence, delivery: delivery, result: result) }
        metrics.count(result)
    }

    /// Sets whether a device saves power; priorities 5 and 1 wait then.
    package func setSavingPower(_ saving: Bool, device: DeviceNumber, fence: UInt64) {
        at(device) { $0.setSavingPower(saving, device: device, fence: fence) }
    }

    /// Dismisses every connection, or one device's.
    package func dismiss(_ reason: DismissalReason, only device: DeviceNumber? = nil) {
        if let device {
            at(device) { $0.dismiss(reason, only: device) }
        } else {
            for shard in shards { at(shard) { $0.dismiss(reason) } }
        }
    }

    /// The number of connected devices.
    package var connectedCount: Int {
        shards.reduce(0) { $0 + $1.state.withLock { $0.connections.count } }
    }

    package func isConnected(_ device: DeviceNumber) -> Bool { at(device) { $0.connections[device] != nil } }

    /// The memory of all notifications.
    package var memory: EnvelopeMemory { load.memory }

    /// The number of reads that are under way.
    package var readCount: Int { load.reads.load(ordering: .acquiring) }

    // MARK: - Running

    /// Runs ticks, releases and sweeps until the task is cancelled.
    package func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.runTicks() }
            group.addTask { await self.runReleases() }
            group.addTask { await self.runSweeps() }
        }
    }

    private func runTicks() async {
        for await _ in graceBegan.stream {
            repeat {
                do { try await Task.sleep(for: configuration.acknowledgementTick) } catch { return }
            } while tick()
        }
    }

    /// Ends one tick of the acknowledgement grace.
    /// - Returns: Whether a delivery still waits for its acknowledgement.
    @discardableResult
    package func tick() -> Bool {
        shards.reduce(false) { isWaiting, shard in
            at(shard) { shard in
                if shard.isAwaitingAcknowledgements { shard.tick() }
                return shard.isAwaitingAcknowledgements
            } || isWaiting
        }
    }

    private func runReleases() async {
        for await _ in holdBegan.stream {
            // Each second, because wall time can be moved.
            repeat {
                do { try await Task.sleep(for: .seconds(1)) } catch { return }
            } while release()
        }
    }

    /// Releases the holds that are over.
    /// - Returns: Whether there are more.
    @discardableResult
    package func release() -> Bool {
        let now = clock.now()
        return shards.reduce(false) { isWaiting, shard in
            at(shard) { shard in
                if !shard.holds.isEmpty { shard.release(at: now, limit: configuration.releaseStep) }
                return !shard.holds.isEmpty
            } || isWaiting
        }
    }

    /// Reads what was withheld after a jump of the clock, once its time is certain.
    package func releaseWithheld() {
        for shard in shards { at(shard) { $0.releaseWithheld() } }
    }

    private func runSweeps() async {
        while !Task.isCancelled {
            await sweep()
            do { try await Task.sleep(for: configuration.expirySweep) } catch { return }
        }
    }

    /// Removes expired notifications and the journal's oldest lines.
    package func sweep() async {
        let now = clock.now()
        await ExpirySweep(store: store, step: configuration.expirySweepStep, logger: logger)
            .run(at: clock.certainTime(), terms: terms.withLock { $0 })
        for shard in shards { at(shard) { $0.holdRules.budget.forget(at: now) } }
        load.overload.look()
    }

    /// Sets the gauges before a scrape of the metrics.
    package func measure() { metrics.show(waiting: store.count, connected: connectedCount, memory: memory.current) }

    // MARK: - Effects

    func at<Result: Sendable>(_ device: DeviceNumber, _ decide: (inout DeliveryShard) -> Result) -> Result {
        // Fibonacci hashing: device numbers are consecutive. The number of shards is a power of two.
        at(shards[Int((device.value &* 0x9E37_79B9_7F4A_7C15) >> 32 & UInt64(shards.count - 1))], decide)
    }

    func at<Result: Sendable>(_ shard: Shard, _ decide: (inout DeliveryShard) -> Result) -> Result {
        shard.state.withLock { shard in
            let wasHolding = !shard.holds.isEmpty
            let result = decide(&shard)
            if !wasHolding, !shard.holds.isEmpty { holdBegan.send() }
            if !shard.effects.isEmpty {
                perform(shard.effects)
                shard.clearEffects()
            }
            return result
        }
    }

    private func perform(_ effects: [DeliveryEffect]) {
        var rest = effects[...]
        while let effect = rest.popFirst() {
            // A notification that is stored as it arrives costs the store one order instead of two.
            if case .envelope(let envelope, .record(.received)) = effect,
                case .envelope(let stored, .store(let reason, let tag))? = rest.first, stored === envelope
            {
                rest.removeFirst()
                envelope.count(in: memory)
                store.put(envelope, reason: reason, tag: tag, isNew: true)
            } else {
                perform(effect)
            }
        }
    }

    private func perform(_ effect: DeliveryEffect) {
        switch effect {
        case .deliver(let link, let delivery):
            delivery.envelope.count(in: memory)
            link.deliver(delivery)
        case .dismiss(let link, let reason): link.dismiss(reason)
        case .read(let slots, let number): read(slots, number: number)
        case .envelope(let envelope, let effect): perform(effect, on: envelope)
        }
    }

    private func perform(_ effect: EnvelopeEffect, on envelope: Envelope) {
        switch effect {
        case .store(let reason, let tag):
            envelope.count(in: memory)
            store.put(envelope, reason: reason, tag: tag, isNew: false)
        case .remove(let sequence, let state, let newer):
            let event = event(state, envelope, replacement: newer)
            store.remove(envelope.registeredSlot, sequence: sequence, event: event)
        case .record(let state):
            store.record(event(state, envelope), settling: nil)
        case .acceptAndRecord(let state):
            store.record(event(state, envelope), settling: nil)
            envelope.settle(.accepted)
        case .recordThenAccept(let state, let newer):
            store.record(event(state, envelope, replacement: newer), settling: envelope.completion)
        case .settle(let outcome):
            envelope.settle(outcome)
        case .passOn:
            directory.passOn(envelope) { [self] isTaken in
                if !isTaken { store.record(event(.discardedDeviceOffline, envelope), settling: nil) }
            }
        }
    }

    private func event(_ state: JournalState, _ envelope: Envelope, replacement: NotificationID? = nil) -> JournalEvent
    {
        let time = state == .received ? envelope.notification.received : clock.now()
        return JournalEvent(state, envelope.notification, at: time, replacement: replacement)
    }

    /// Starts a read; each connection has at most one under way for each hold reason.
    private func read(_ slots: [RegisteredSlot], number: UInt64) {
        guard let device = slots.first?.slot.device else { return }
        load.reads.wrappingAdd(1, ordering: .relaxed)
        store.read(slots) { [self] result in
            switch result {
            case .success(let found):
                let (now, certainTime) = (clock.now(), clock.certainTime())
                at(device) { shard in
                    shard.holdRules.certainTime = certainTime
                    shard.haveRead(slots.map(\.slot), found: found, number: number, now: now)
                }
            case .failure(let error):
                logger.error("could not read stored notifications of a device", metadata: ["error": "\(error)"])
                at(device) { $0.couldNotRead(slots.map(\.slot), number: number) }
            }
            load.reads.wrappingSubtract(1, ordering: .releasing)
        }
    }
}

extension PostOffice: MailboxStoreReporter {
    package func stored(_ puts: [StoredPut]) {
        var replaced = 0
        for put in puts {
            if put.isReplaced { replaced += 1 }
            at(put.envelope.notification.slot.device) { $0.stored(put) }
        }
        // Also for devices that are connected here: another node may have claimed one since.
        directory.notifyHolders(of: puts)
        metrics.stored.increment(by: puts.count)
        if replaced > 0 { metrics.replacedUnwritten.increment(by: replaced) }
    }

    package func failed(_ envelopes: [Envelope]) { couldNotStore(envelopes, .refused(.serviceUnavailable)) }

    package func unknown(_ envelopes: [Envelope]) { couldNotStore(envelopes, .unknown) }

    private func couldNotStore(_ envelopes: [Envelope], _ outcome: CompletionOutcome) {
        for envelope in envelopes {
            at(envelope.notification.slot.device) { $0.couldNotStore(envelope, outcome) }
        }
        metrics.notStored.increment(by: envelopes.count)
    }
}
