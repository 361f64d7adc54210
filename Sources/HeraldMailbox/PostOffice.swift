import CoreMetrics
package import HeraldModel
package import Logging
import Synchronization

/// Where providers and devices meet: takes notifications in, hands them to connected devices, and keeps what waits.
///
/// 1. Asks the ``Desk`` of the device what is to be done, and does it: every order under the desk's lock, so that
///    what happens to one slot happens in one order. Nothing that is done there waits.
/// 2. Stores what a connected device does not acknowledge within the grace, by a tick that runs only while needed.
/// 3. Has the store read what waits.
/// 4. Reads on where the clock has given an app a new right to a notification, by a tick that runs only while one waits.
/// 5. Sweeps what expired, and trims the journal.
package final class PostOffice: Sendable {
    private final class Counter: Sendable {
        let desk: Mutex<Desk>

        init(_ configuration: PostOfficeConfiguration) {
            desk = Mutex(
                Desk(
                    outstandingLimit: configuration.outstandingPerDevice,
                    budget: BackgroundBudget(
                        burst: configuration.backgroundBurst,
                        perHour: configuration.backgroundPerHour
                    ),
                    rates: RateBook(burst: configuration.tokenBurst, perSecond: configuration.tokenRate)
                )
            )
        }
    }

    package typealias Store = MailboxStore & JournalStore

    private let configuration: PostOfficeConfiguration
    private let terms: Mutex<StorageTerms>
    private let clock: any WallClock
    private let store: any Store
    private let directory: any ConnectionDirectory
    private let logger: Logger
    private let counters: [Counter]
    private let mask: UInt64
    private let reads = Atomic<Int>(0)
    private let metrics = PostOfficeMetrics()
    private let graceSignal: AsyncStream<Void>
    private let graceContinuation: AsyncStream<Void>.Continuation
    private let holdSignal: AsyncStream<Void>
    private let holdContinuation: AsyncStream<Void>.Continuation
    /// The memory of the notifications that are held.
    package let load: LetterLoad

    package init(
        configuration: PostOfficeConfiguration = PostOfficeConfiguration(),
        clock: any WallClock,
        store: any Store,
        directory: any ConnectionDirectory,
        logger: Logger
    ) {
        self.configuration = configuration
        terms = Mutex(configuration.terms)
        self.clock = clock
        self.store = store
        self.directory = directory
        self.logger = logger
        var count: UInt64 = 1
        while count < configuration.shardCount { count *= 2 }
        mask = count - 1
        counters = (0..<count).map { _ in Counter(configuration) }
        load = LetterLoad(limit: configuration.notificationBytes)
        (graceSignal, graceContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        (holdSignal, holdContinuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// How long a notification may be stored at the longest; the doors cut `apns-expiration` to it.
    package var longestStorage: Duration { terms.withLock { $0.longestStorage } }

    /// How long notifications and the journal are kept from now on.
    package func replaceTerms(_ terms: StorageTerms) {
        self.terms.withLock { $0 = terms }
    }

    // For the gateway.

    /// Whether notifications are taken: the store takes more, and there is memory for them.
    package var isAccepting: Bool { store.isAccepting && !load.isFull }

    /// Takes a notification for a registration of that generation.
    ///
    /// Callable from any thread; never waits. A letter whose decision is `.pending` is settled exactly once.
    package func post(_ letter: Letter, generation: UInt32) -> PostDecision {
        guard isAccepting else {
            metrics.refused.increment()
            return .refused(.serviceUnavailable, since: nil)
        }
        let isPressed = load.isHigh
        let (decision, wakesTick) = at(letter.notification.slot.device) { desk in
            let wasWaiting = desk.isAwaitingAcknowledgements
            desk.isPressed = isPressed
            let decision = desk.post(letter, generation: generation)
            return (decision, !wasWaiting && desk.isAwaitingAcknowledgements)
        }
        if wakesTick { graceContinuation.yield() }
        if case .refused = decision { metrics.refused.increment() } else { metrics.received.increment() }
        return decision
    }

    /// Takes a notification that no app could read: it goes on record, and nowhere else.
    package func discard(_ letter: Letter, generation: UInt32, as state: JournalState) -> PostDecision {
        guard isAccepting else { return .refused(.serviceUnavailable, since: nil) }
        return at(letter.notification.slot.device) { $0.discard(letter, generation: generation, as: state) }
    }

    /// Puts a further line on record about a notification that was posted.
    package func note(_ state: JournalState, about notification: Notification) {
        store.record([JournalEvent(state, notification, at: clock.now())])
    }

    // For the courier.

    /// A device's connection, in place of an older one, which is dismissed.
    package func attach(_ device: DeviceNumber, link: any DeviceLink, isSavingPower: Bool, fence: UInt64) {
        at(device) { $0.attach(device, link: link, isSavingPower: isSavingPower, fence: fence) }
    }

    /// The connection is gone; what it had not acknowledged waits in the store.
    package func detach(_ device: DeviceNumber, fence: UInt64) {
        at(device) { $0.detach(device, fence: fence) }
        directory.release(device, fence: fence)
    }

    /// The connection wants the notifications of apps: what waits is delivered, then what arrives.
    package func open(_ apps: [WantedApp], on device: DeviceNumber, fence: UInt64) {
        at(device) { $0.open(apps, on: device, fence: fence) }
    }

    /// The connection no longer wants an app's notifications.
    package func close(_ slot: Slot, fence: UInt64) {
        at(slot.device) { $0.close(slot, fence: fence) }
    }

    /// A delivery has ended.
    package func finished(_ slot: Slot, fence: UInt64, delivery: DeliveryNumber, result: DeliveryResult) {
        at(slot.device) { $0.finished(slot, fence: fence, delivery: delivery, result: result) }
        metrics.count(result)
    }

    /// The device saves power (priorities 5 and 1 wait), or no longer does.
    package func setSavingPower(_ saving: Bool, device: DeviceNumber, fence: UInt64) {
        at(device) { $0.setSavingPower(saving, device: device, fence: fence) }
    }

    /// Ends every connection, or one device's.
    package func dismiss(_ reason: DismissalReason, only device: DeviceNumber? = nil) {
        if let device {
            at(device) { $0.dismiss(reason, only: device) }
        } else {
            for counter in counters { at(counter) { $0.dismiss(reason) } }
        }
    }

    /// How many devices are connected.
    package var connectedCount: Int {
        counters.reduce(0) { $0 + $1.desk.withLock { $0.connectedCount } }
    }

    package func isConnected(_ device: DeviceNumber) -> Bool { at(device) { $0.isConnected(device) } }

    /// How many reads from the store are under way or wait for their turn.
    package var readCount: Int { reads.load(ordering: .acquiring) }

    // For the registry.

    package func registration(_ slot: Slot) -> Registration? {
        at(slot.device) { $0.registration(slot) }
    }

    package func setRegistration(_ registration: Registration) {
        at(registration.slot.device) { $0.setRegistration(registration) }
    }

    /// Takes over all registrations that the store knows: once, before anything is posted.
    package func setRegistrations(_ registrations: [Registration]) {
        let share = registrations.count / counters.count
        for counter in counters { at(counter) { $0.reserveRegistrations(share + share / 8) } }
        for registration in registrations { setRegistration(registration) }
    }

    /// The app of a number, as soon as it has one: whether it is owed a notification each day.
    package func know(_ app: App, as number: AppNumber) {
        guard configuration.newsstandTopics.contains(app.topic) else { return }
        for counter in counters { at(counter) { $0.budget.addNewsstand(number) } }
    }

    package func endRegistration(_ slot: Slot, at moment: WallTime) {
        at(slot.device) { $0.endRegistration(slot, at: moment) }
    }

    /// Nothing is known of an ended registration any more.
    package func forgetRegistration(_ slot: Slot) {
        at(slot.device) { $0.forgetRegistration(slot) }
    }

    // What runs.

    /// Runs until cancelled: the grace's tick, releases, sweeps.
    package func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.runTicks() }
            group.addTask { await self.runReleases() }
            group.addTask { await self.runSweeps() }
        }
    }

    private func runTicks() async {
        for await _ in graceSignal {
            repeat {
                do { try await Task.sleep(for: configuration.acknowledgementGrace) } catch { return }
            } while tick()
        }
    }

    /// One tick of the grace.
    /// - Returns: Whether anything still waits for its acknowledgement.
    @discardableResult
    package func tick() -> Bool {
        var isWaiting = false
        for counter in counters {
            let waits = at(counter) { desk in
                if desk.isAwaitingAcknowledgements { desk.tick() }
                return desk.isAwaitingAcknowledgements
            }
            isWaiting = isWaiting || waits
        }
        return isWaiting
    }

    private func runReleases() async {
        for await _ in holdSignal {
            // Wall time can be moved, so it is looked at each second, and nobody sleeps for an hour.
            repeat {
                do { try await Task.sleep(for: .seconds(1)) } catch { return }
            } while release()
        }
    }

    /// Reads on what waits for the clock and is due.
    /// - Returns: Whether anything still waits for it.
    @discardableResult
    package func release() -> Bool {
        let now = clock.now()
        var isWaiting = false
        for counter in counters {
            let waits = at(counter) { desk in
                if !desk.holds.isEmpty { desk.release(at: now, limit: configuration.releaseStep) }
                return !desk.holds.isEmpty
            }
            isWaiting = isWaiting || waits
        }
        return isWaiting
    }

    private func runSweeps() async {
        while !Task.isCancelled {
            await sweep()
            do { try await Task.sleep(for: configuration.expirySweep) } catch { return }
        }
    }

    /// Removes what expired, and the journal's oldest lines.
    package func sweep() async {
        do {
            let now = clock.now()
            while try await store.removeExpired(at: now, limit: configuration.expirySweepStep)
                == configuration.expirySweepStep
            {}
            for counter in counters { at(counter) { $0.budget.forget(at: now) } }
            let terms = terms.withLock { $0 }
            try await store.trim(before: now - terms.journalAge, maximumBytes: terms.journalBytes)
        } catch is CancellationError {
            // The service stops.
        } catch {
            logger.warning("could not remove what expired; trying again later", metadata: ["error": "\(error)"])
        }
        metrics.waiting.record(store.count)
        metrics.connected.record(connectedCount)
        metrics.held.record(load.current)
    }

    // How orders are carried out.

    private func at<Result: Sendable>(_ device: DeviceNumber, _ decide: (inout Desk) -> Result) -> Result {
        // Fibonacci hashing: device numbers are handed out in sequence.
        at(counters[Int((device.value &* 0x9E37_79B9_7F4A_7C15) >> 32 & mask)], decide)
    }

    private func at<Result: Sendable>(_ counter: Counter, _ decide: (inout Desk) -> Result) -> Result {
        counter.desk.withLock { desk in
            let wasHolding = !desk.holds.isEmpty
            let result = decide(&desk)
            if !wasHolding, !desk.holds.isEmpty { holdContinuation.yield() }
            if !desk.orders.isEmpty {
                perform(desk.orders)
                desk.clearOrders()
            }
            return result
        }
    }

    private func perform(_ orders: [DeskOrder]) {
        var rest = orders[...]
        while let order = rest.popFirst() {
            // What comes and is stored at once costs the store one order instead of two.
            if case .record(.received, let letter) = order, case .store(let stored, let reason, let tag)? = rest.first,
                stored === letter
            {
                rest.removeFirst()
                put(letter, reason, tag, isNew: true)
            } else {
                perform(order)
            }
        }
    }

    private func put(_ letter: Letter, _ reason: StoreReason, _ tag: PutTag?, isNew: Bool) {
        letter.count(in: load)
        store.put(letter, reason: reason, tag: tag, isNew: isNew)
    }

    private func perform(_ order: DeskOrder) {
        switch order {
        case .deliver(let link, let delivery):
            delivery.letter.count(in: load)
            link.deliver(delivery)
        case .dismiss(let link, let reason):
            link.dismiss(reason)
        case .store(let letter, let reason, let tag):
            put(letter, reason, tag, isNew: false)
        case .remove(let letter, let sequence, let state):
            let event = JournalEvent(state, letter.notification, at: clock.now())
            store.remove(letter.notification.slot, sequence: sequence, event: event)
        case .record(let state, let letter):
            let time = state == .received ? letter.notification.received : clock.now()
            store.record(JournalEvent(state, letter.notification, at: time), settling: nil)
        case .recordAndSettle(let state, let letter):
            letter.note(state)
            store.record(JournalEvent(state, letter.notification, at: clock.now()), settling: letter.receipt)
        case .overtake(let letter, let sequence, let newer):
            let event = JournalEvent(.replaced, letter.notification, at: clock.now(), replacement: newer)
            store.remove(letter.notification.slot, sequence: sequence, event: event)
        case .overtakeUnstored(let letter, let newer):
            let event = JournalEvent(.replaced, letter.notification, at: clock.now(), replacement: newer)
            store.record(event, settling: letter.receipt)
        case .settle(let letter, let outcome):
            letter.receipt?.settle(outcome)
        case .read(let slots, let fence):
            read(slots, fence: fence)
        }
    }

    /// One read for each connection and obstacle at a time, at the most: that bounds how many are under way.
    private func read(_ slots: [Slot], fence: UInt64) {
        guard let device = slots.first?.device else { return }
        reads.wrappingAdd(1, ordering: .relaxed)
        store.read(slots) { [self] result in
            switch result {
            case .success(let found):
                let now = clock.now()
                at(device) { $0.haveRead(slots, found: found, fence: fence, now: now) }
            case .failure(let error):
                logger.error("could not read what waits for a device", metadata: ["error": "\(error)"])
                at(device) { $0.couldNotRead(slots, fence: fence) }
            }
            reads.wrappingSubtract(1, ordering: .releasing)
        }
    }
}

extension PostOffice: MailboxStoreReporter {
    package func stored(_ puts: [StoredPut]) {
        var replaced = 0
        for put in puts {
            if put.isReplaced { replaced += 1 }
            let slot = put.letter.notification.slot
            let isHere = at(slot.device) { desk in
                desk.stored(put)
                return desk.isConnected(slot.device)
            }
            if !isHere { directory.ring(slot, sequence: put.sequence) }
        }
        metrics.stored.increment(by: puts.count)
        if replaced > 0 { metrics.replacedUnwritten.increment(by: replaced) }
    }

    package func failed(_ letters: [Letter]) {
        for letter in letters {
            at(letter.notification.slot.device) { $0.couldNotStore(letter) }
        }
        metrics.notStored.increment(by: letters.count)
    }
}
