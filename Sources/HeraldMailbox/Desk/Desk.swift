import HeraldModel

/// What the post office is to do, as a ``Desk`` decides it.
///
/// Orders name letters: a notification itself is too large to be copied with every step.
enum DeskOrder {
    case deliver(any DeviceLink, Delivery)
    case dismiss(any DeviceLink, DismissalReason)
    case store(Letter, StoreReason, PutTag?)
    case remove(Letter, sequence: UInt64, JournalState)
    case record(JournalState, Letter)
    /// A line that the receipt waits for.
    case recordAndSettle(JournalState, Letter)
    case settle(Letter, ReceiptOutcome)
    /// A newer one was acknowledged before this stored one: its place is empty, as if the newer had been stored there.
    case overtake(Letter, sequence: UInt64, by: NotificationID)
    /// The same where it is not stored; its receipt waits for the line.
    case overtakeUnstored(Letter, by: NotificationID)
    case read([Slot], fence: UInt64)
}

/// One share of the devices: their registrations, and the lines of those that are connected.
///
/// All decisions about what happens to a notification are made here, in one place and under one lock per share; nothing
/// here waits, reads a clock or knows a socket or a database. Orders for one slot must be carried out in the order given.
struct Desk {
    var holdings: [Slot: Holding] = [:]
    var lines: [DeviceNumber: Line] = [:]
    /// Deliveries that have not been stored yet, in two generations: those of the present tick and of the one before.
    private var fresh: [(DeviceNumber, PutTag)] = []
    private var ripe: [(DeviceNumber, PutTag)] = []
    /// What ended on its way into the store and whose connection was gone before the store had it.
    var departed: [ObjectIdentifier: Line.Outstanding] = [:]
    let outstandingLimit: Int
    /// How many deliveries a connection may have while memory is short.
    static let pressedLimit = 4
    /// Whether memory is short: what a device does not take at once waits on the disk instead.
    var isPressed = false
    var budget: BackgroundBudget
    var rates: RateBook
    /// Apps whose next notification waits for the clock.
    var holds = DueQueue()
    /// What has been decided and not yet been carried out.
    var orders: [DeskOrder] = []

    init(
        outstandingLimit: Int,
        budget: BackgroundBudget = BackgroundBudget(),
        rates: RateBook = RateBook()
    ) {
        self.outstandingLimit = outstandingLimit
        self.budget = budget
        self.rates = rates
    }

    /// Whether a delivery waits for its acknowledgement before it is stored.
    var isAwaitingAcknowledgements: Bool { !fresh.isEmpty || !ripe.isEmpty }

    var connectedCount: Int { lines.count }

    /// The orders have been carried out.
    mutating func clearOrders() {
        orders.removeAll(keepingCapacity: true)
    }

    /// Decides about a notification for a registration of that generation.
    mutating func post(_ letter: Letter, generation: UInt32) -> PostDecision {
        let slot = letter.notification.slot
        guard let place = holdings.index(forKey: slot), let registration = holdings.values[place].registration else {
            return .refused(.badDeviceToken, since: nil)
        }
        guard registration.isLive, registration.generation == generation else {
            return .refused(.unregistered, since: registration.ended)
        }
        guard rates.take(slot, at: letter.notification.received) else { return .refused(.tooManyRequests, since: nil) }
        orders.append(.record(.received, letter))
        guard registration.isEnabled else {
            orders.append(.recordAndSettle(.discardedDisabled, letter))
            return .pending
        }
        return letter.notification.storedUntil == nil
            ? postOnce(letter)
            : postStorable(letter, place)
    }

    /// Takes a notification that goes on record and nowhere else, if its token is good.
    mutating func discard(_ letter: Letter, generation: UInt32, as state: JournalState) -> PostDecision {
        let slot = letter.notification.slot
        guard let registration = registration(slot) else { return .refused(.badDeviceToken, since: nil) }
        guard registration.isLive, registration.generation == generation else {
            return .refused(.unregistered, since: registration.ended)
        }
        guard rates.take(slot, at: letter.notification.received) else { return .refused(.tooManyRequests, since: nil) }
        orders.append(.record(.received, letter))
        orders.append(.recordAndSettle(state, letter))
        return .pending
    }

    /// Not to be stored: sent if the device is there to take it, and forgotten.
    private mutating func postOnce(_ letter: Letter) -> PostDecision {
        let notification = letter.notification
        let slot = notification.slot
        guard let line = lines[slot.device], let gate = line.gate(slot.app) else {
            letter.note(.discardedDeviceOffline)
            orders.append(.record(.discardedDeviceOffline, letter))
            return .accepted
        }
        if let objection = objection(to: notification, on: line, at: notification.received) {
            let state = JournalState(notStored: objection.obstacle)
            letter.note(state, next: objection.until)
            orders.append(.record(state, letter))
            return .accepted
        }
        _ = hand(letter, to: line, gate, state: .once, isFromStorage: false, at: notification.received)
        return .accepted
    }

    private mutating func postStorable(_ letter: Letter, _ place: [Slot: Holding].Index) -> PostDecision {
        let notification = letter.notification
        let slot = notification.slot
        guard let line = lines[slot.device], let gate = line.gate(slot.app) else {
            holdings.values[place].strayPuts += 1
            store(letter, .deviceOffline)
            return .pending
        }
        let objection = objection(to: notification, on: line, at: notification.received)
        if case .open = gate.state, objection == nil, gate.qualityOfService > 0, gate.pendingPuts == 0 {
            let number = hand(
                letter,
                to: line,
                gate,
                state: .unstored,
                isFromStorage: false,
                at: notification.received
            )
            fresh.append((slot.device, PutTag(fence: line.fence, delivery: number)))
            return .pending
        }
        // What is stored now must not be overtaken in the store by what was sent before it.
        storeUnstored(in: line, app: slot.app)
        if case .open = gate.state, let objection { hold(slot, in: line, for: objection) }
        let reason = objection.map { StoreReason($0.obstacle) } ?? .backlog
        store(letter, reason, line.notePut(slot.app), next: objection?.until)
        return .pending
    }

    mutating func storeUnstored(in line: Line, app: AppNumber?) {
        for (number, delivery) in line.unended(of: app) {
            guard case .unstored = delivery.state else { continue }
            line.setState(number, .storing)
            store(delivery.letter, .unacknowledged, PutTag(fence: line.fence, delivery: number))
        }
    }

    /// One tick of the grace: what waited through the whole of the last one is stored now.
    mutating func tick() {
        let due = ripe
        ripe = fresh
        fresh = []
        for (device, tag) in due {
            guard let line = lines[device], line.fence == tag.fence, let number = tag.delivery,
                let delivery = line.delivery(number), case .unstored = delivery.state
            else { continue }
            line.setState(number, .storing)
            store(delivery.letter, .unacknowledged, tag)
        }
    }

    func registration(_ slot: Slot) -> Registration? { holdings[slot]?.registration }

    /// Makes room for so many registrations.
    mutating func reserveRegistrations(_ count: Int) {
        holdings.reserveCapacity(count)
    }

    /// Takes a registration as the store has it.
    mutating func setRegistration(_ registration: Registration) {
        holdings[registration.slot, default: Holding()].registration = registration
    }

    /// Nothing is known of an ended registration any more.
    mutating func forgetRegistration(_ slot: Slot) {
        guard let place = holdings.index(forKey: slot) else { return }
        holdings.values[place].registration = nil
        removeIfEmpty(place)
    }

    /// The registration ended: nothing is sent any more, and what was on its way is not stored.
    mutating func endRegistration(_ slot: Slot, at moment: WallTime) {
        holdings[slot]?.registration?.isLive = false
        holdings[slot]?.registration?.ended = moment
        guard let line = lines[slot.device] else { return }
        closeGate(slot, in: line)
        for (number, delivery) in line.unended(of: slot.app) {
            line.end(number)
            if delivery.state.isInStoresHands { addStrays(1, slot) }
            switch delivery.state {
            case .unstored: orders.append(.recordAndSettle(.discardedUnregistered, delivery.letter))
            case .once: orders.append(.record(.discardedUnregistered, delivery.letter))
            // The store tells of what it held, and of what is on its way into it once that is there.
            case .storing, .stored, .endedWhileStoring, .overtaken, .overtakenWhileStoring: break
            }
        }
    }
}

/// Puts that are on their way into the store: whoever opens a gate while they are must store what arrives behind them, or
/// the older would come to the device after the newer.
extension Desk {
    /// Those of every slot that has any.
    var strayPuts: [Slot: UInt32] { holdings.mapValues(\.strayPuts).filter { $0.value > 0 } }

    mutating func addStrays(_ count: UInt32, _ slot: Slot) {
        if count > 0 { holdings[slot, default: Holding()].strayPuts += count }
    }

    mutating func takeStrays(_ slot: Slot) -> UInt32 {
        guard let place = holdings.index(forKey: slot) else { return 0 }
        let count = holdings.values[place].strayPuts
        holdings.values[place].strayPuts = 0
        removeIfEmpty(place)
        return count
    }

    mutating func closeGate(_ slot: Slot, in line: Line) {
        addStrays(line.gate(slot.app)?.pendingPuts ?? 0, slot)
        line.setGate(slot.app, nil)
    }

    /// The store has reported a put that is not a delivery of the slot's present connection.
    mutating func noteReported(_ slot: Slot, at place: [Slot: Holding].Index?, _ line: Line?) {
        if line?.notePutDone(slot.app) ?? false { return }
        guard let place, holdings.values[place].strayPuts > 0 else { return }
        holdings.values[place].strayPuts -= 1
        removeIfEmpty(place)
    }

    private mutating func removeIfEmpty(_ place: [Slot: Holding].Index) {
        if holdings.values[place].isEmpty { holdings.remove(at: place) }
    }
}
