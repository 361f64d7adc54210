import HeraldModel

/// What the post office is to do, as a ``Desk`` decides it.
enum DeskOrder {
    case deliver(any DeviceLink, Delivery)
    case dismiss(any DeviceLink, DismissalReason)
    case store(Letter, StoreReason, PutTag?)
    case remove(Slot, sequence: UInt64, JournalState, Notification)
    case record(JournalState, Notification)
    /// A line that the receipt waits for.
    case recordAndSettle(JournalState, Letter)
    case settle(Letter, ReceiptOutcome)
    case read([Slot], fence: UInt64)
}

/// One share of the devices: their registrations, and the lines of those that are connected.
///
/// All decisions about what happens to a notification are made here, in one place and under one lock per share; nothing
/// here waits, reads a clock or knows a socket or a database. Orders for one slot must be carried out in the order given.
struct Desk {
    private var registrations: [Slot: Registration] = [:]
    private var lines: [DeviceNumber: Line] = [:]
    /// Deliveries that have not been stored yet, in two generations: those of the present tick and of the one before.
    private var fresh: [(DeviceNumber, PutTag)] = []
    private var ripe: [(DeviceNumber, PutTag)] = []
    private let outstandingLimit: Int
    /// What has been decided and not yet been carried out.
    private(set) var orders: [DeskOrder] = []

    init(outstandingLimit: Int) {
        self.outstandingLimit = outstandingLimit
    }

    /// Whether a delivery waits for its acknowledgement before it is stored.
    var isAwaitingAcknowledgements: Bool { !fresh.isEmpty || !ripe.isEmpty }

    var connectedCount: Int { lines.count }

    /// The orders have been carried out.
    mutating func clearOrders() {
        orders.removeAll(keepingCapacity: true)
    }

    // What a provider posts.

    /// Decides about a notification for a registration of that generation.
    mutating func post(_ letter: Letter, generation: UInt32) -> PostDecision {
        let slot = letter.notification.slot
        guard let registration = registrations[slot] else { return .refused(.badDeviceToken, since: nil) }
        guard registration.isLive, registration.generation == generation else {
            return .refused(.unregistered, since: registration.ended)
        }
        orders.append(.record(.received, letter.notification))
        guard registration.isEnabled else {
            orders.append(.recordAndSettle(.discardedDisabled, letter))
            return .pending
        }
        return letter.notification.storedUntil == nil
            ? postOnce(letter)
            : postStorable(letter)
    }

    /// Not to be stored: sent if the device is there to take it, and forgotten.
    private mutating func postOnce(_ letter: Letter) -> PostDecision {
        let slot = letter.notification.slot
        guard let line = lines[slot.device], let gate = line.gate(slot.app), line.hasRoom,
            line.permits(letter.notification.priority)
        else {
            orders.append(.record(.discardedDeviceOffline, letter.notification))
            return .accepted
        }
        let delivery = line.hand(
            letter,
            app: slot.app,
            state: .once,
            isFromStorage: false,
            qualityOfService: gate.qualityOfService
        )
        orders.append(.deliver(line.link, delivery))
        return .accepted
    }

    private mutating func postStorable(_ letter: Letter) -> PostDecision {
        let slot = letter.notification.slot
        guard let line = lines[slot.device], let gate = line.gate(slot.app) else {
            orders.append(.store(letter, .deviceOffline, nil))
            return .pending
        }
        let isPermitted = line.permits(letter.notification.priority)
        if case .open = gate.state, isPermitted, line.hasRoom, gate.qualityOfService > 0 {
            let delivery = line.hand(
                letter,
                app: slot.app,
                state: .unstored,
                isFromStorage: false,
                qualityOfService: gate.qualityOfService
            )
            fresh.append((slot.device, PutTag(fence: line.fence, delivery: delivery.number)))
            orders.append(.deliver(line.link, delivery))
            return .pending
        }
        // What is stored now must not be overtaken in the store by what was sent before it.
        storeUnstored(in: line, app: slot.app)
        if case .open = gate.state, !isPermitted || !line.hasRoom {
            line.move(slot.app, to: .behind(forPower: !isPermitted))
        }
        orders.append(.store(letter, isPermitted ? .backlog : .power, nil))
        return .pending
    }

    private mutating func storeUnstored(in line: Line, app: AppNumber?) {
        for (number, delivery) in line.unended(of: app) {
            guard case .unstored = delivery.state else { continue }
            line.setState(number, .storing)
            orders.append(.store(delivery.letter, .unacknowledged, PutTag(fence: line.fence, delivery: number)))
        }
    }

    /// One tick of the grace: what waited through the whole of the last one is stored now.
    mutating func tick() {
        let due = ripe
        ripe = fresh
        fresh = []
        for (device, tag) in due {
            guard let line = lines[device], line.fence == tag.fence, let delivery = line.delivery(tag.delivery),
                case .unstored = delivery.state
            else { continue }
            line.setState(tag.delivery, .storing)
            orders.append(.store(delivery.letter, .unacknowledged, tag))
        }
    }

    // What the store reports.

    /// A put is durable.
    mutating func stored(_ put: StoredPut) {
        let slot = put.letter.notification.slot
        orders.append(.settle(put.letter, .accepted))
        guard let line = lines[slot.device] else { return }
        if let tag = put.tag, tag.fence == line.fence {
            storedOnItsWay(put, tag.delivery, in: line)
        } else {
            storedFirst(put, in: line)
        }
        catchUp(line, slot.device)
    }

    private mutating func storedOnItsWay(
        _ put: StoredPut,
        _ number: DeliveryNumber,
        in line: Line) {
        guard let delivery = line.delivery(number) else { return }
        switch delivery.state {
        case .storing:
            line.setState(number, .stored(put.sequence))
            line.noteSequence(put.sequence, app: delivery.app)
        case .endedWhileStoring(let result):
            line.end(number)
            let notification = put.letter.notification
            let state = JournalState(result, isFromStorage: delivery.isFromStorage)
            orders.append(.remove(notification.slot, sequence: put.sequence, state, notification))
        case .unstored, .stored, .once:
            break
        }
    }

    /// Stored before it was sent: now it may be.
    private mutating func storedFirst(_ put: StoredPut, in line: Line) {
        let app = put.letter.notification.slot.app
        guard let gate = line.gate(app), put.sequence > gate.lastSequence else { return }
        if case .reading(let newest) = gate.state {
            if put.sequence > newest?.sequence ?? 0 { line.move(app, to: .reading(newest: put)) }
            return
        }
        guard registrations[put.letter.notification.slot]?.isEnabled ?? false else {
            let notification = put.letter.notification
            let state = JournalState.discardedDisabledFromStorage
            orders.append(.remove(notification.slot, sequence: put.sequence, state, notification))
            return
        }
        let isPermitted = line.permits(put.letter.notification.priority)
        guard line.hasRoom, isPermitted else {
            line.move(app, to: .behind(forPower: !isPermitted))
            return
        }
        // The newest of the slot by the store's own order, so nothing older waits behind it.
        line.move(app, to: .open)
        line.noteSequence(put.sequence, app: app)
        let delivery = line.hand(
            Letter(put.letter.notification),
            app: app,
            state: .stored(put.sequence),
            isFromStorage: true,
            qualityOfService: gate.qualityOfService
        )
        orders.append(.deliver(line.link, delivery))
    }

    /// A put failed: nothing of it is kept. If the device has acknowledged it all the same, that counts.
    mutating func couldNotStore(_ letter: Letter) {
        let slot = letter.notification.slot
        let line = lines[slot.device]
        let delivery = line?.unended(of: slot.app).first { _, delivery in delivery.letter === letter }
        guard let line, let (number, found) = delivery else {
            orders.append(.settle(letter, .refused(.serviceUnavailable)))
            return
        }
        if case .endedWhileStoring(let result) = found.state {
            line.end(number)
            let state = JournalState(result, isFromStorage: found.isFromStorage)
            orders.append(.record(state, letter.notification))
            orders.append(.settle(letter, .accepted))
        } else {
            line.setState(number, .once)
            orders.append(.settle(letter, .refused(.serviceUnavailable)))
        }
    }

    func isConnected(_ device: DeviceNumber) -> Bool { lines[device] != nil }

    /// What waited in slots has been read. Empty slots are told of too: their gates open.
    mutating func haveRead(
        _ slots: [Slot],
        found: [StoredNotification],
        fence: UInt64,
        now: WallTime) {
        var bySlot: [Slot: StoredNotification] = [:]
        for stored in found { bySlot[stored.notification.slot] = stored }
        for slot in slots {
            guard let line = lines[slot.device], line.fence == fence, let gate = line.gate(slot.app),
                case .reading(let newest) = gate.state
            else { continue }
            var candidate = bySlot[slot]
            if let newest, newest.sequence > candidate?.sequence ?? 0 {
                candidate = StoredNotification(notification: newest.letter.notification, sequence: newest.sequence)
            }
            deliverRead(candidate, slot, gate, in: line, now: now)
        }
    }

    private mutating func deliverRead(
        _ candidate: StoredNotification?,
        _ slot: Slot,
        _ gate: Line.Gate,
        in line: Line,
        now: WallTime) {
        guard let candidate, candidate.sequence > gate.lastSequence, !isOnItsWay(candidate, in: line) else {
            line.move(slot.app, to: .open)
            return
        }
        let notification = candidate.notification
        let isEnabled = registrations[slot]?.isEnabled ?? false
        guard isEnabled, !notification.isExpired(at: now) else {
            line.move(slot.app, to: .open)
            let state: JournalState = isEnabled ? .discardedExpiredFromStorage : .discardedDisabledFromStorage
            orders.append(.remove(slot, sequence: candidate.sequence, state, notification))
            return
        }
        let isPermitted = line.permits(notification.priority)
        guard line.hasRoom, isPermitted else {
            line.move(slot.app, to: .behind(forPower: !isPermitted))
            return
        }
        line.move(slot.app, to: .open)
        line.noteSequence(candidate.sequence, app: slot.app)
        let delivery = line.hand(
            Letter(notification),
            app: slot.app,
            state: .stored(candidate.sequence),
            isFromStorage: true,
            qualityOfService: gate.qualityOfService
        )
        orders.append(.deliver(line.link, delivery))
    }

    /// Read from the store before the store's report of it came: it was sent already, under no sequence yet.
    private func isOnItsWay(_ stored: StoredNotification, in line: Line) -> Bool {
        line.unended(of: stored.notification.slot.app).contains { _, delivery in
            delivery.letter.notification.uniqueID == stored.notification.uniqueID
        }
    }

    /// Reading what waits failed; it is tried again with the next chance.
    mutating func couldNotRead(_ slots: [Slot], fence: UInt64) {
        for slot in slots {
            guard let line = lines[slot.device], line.fence == fence, case .reading? = line.gate(slot.app)?.state
            else { continue }
            line.move(slot.app, to: .behind(forPower: false))
        }
    }

    // What a device does.

    /// A connection, in place of an older one.
    mutating func attach(
        _ device: DeviceNumber,
        link: any DeviceLink,
        isSavingPower: Bool,
        fence: UInt64) {
        if let old = lines[device] {
            guard old.fence < fence else {
                orders.append(.dismiss(link, .takenOver))
                return
            }
            orders.append(.dismiss(old.link, .takenOver))
            leave(old)
        }
        lines[device] = Line(link: link, fence: fence, isSavingPower: isSavingPower, limit: outstandingLimit)
    }

    /// The connection is gone: what it has not acknowledged waits in the store.
    mutating func detach(_ device: DeviceNumber, fence: UInt64) {
        guard let line = lines[device], line.fence == fence else { return }
        lines[device] = nil
        leave(line)
    }

    private mutating func leave(_ line: Line) {
        for (_, delivery) in line.unended() {
            switch delivery.state {
            case .unstored:
                orders.append(.store(delivery.letter, .unacknowledged, nil))
            case .once:
                orders.append(.record(.discardedDeviceOffline, delivery.letter.notification))
            case .storing, .stored, .endedWhileStoring:
                // Stored, or about to be. One that ended while it was being stored is delivered again: at least once.
                break
            }
        }
    }

    /// The connection wants an app's notifications: first what waits.
    mutating func open(_ slot: Slot, fence: UInt64, qualityOfService: UInt8) {
        guard let line = lines[slot.device], line.fence == fence else { return }
        if var gate = line.gate(slot.app) {
            gate.qualityOfService = qualityOfService
            line.setGate(slot.app, gate)
        } else {
            line.setGate(slot.app, Line.Gate(state: .reading(newest: nil), qualityOfService: qualityOfService))
            orders.append(.read([slot], fence: fence))
        }
    }

    /// The connection no longer wants an app's notifications; what was handed over may still be acknowledged.
    mutating func close(_ slot: Slot, fence: UInt64) {
        guard let line = lines[slot.device], line.fence == fence else { return }
        line.setGate(slot.app, nil)
        storeUnstored(in: line, app: slot.app)
    }

    /// A delivery has ended.
    mutating func finished(
        _ slot: Slot,
        fence: UInt64,
        delivery number: DeliveryNumber,
        result: DeliveryResult) {
        guard let line = lines[slot.device], line.fence == fence, let delivery = line.delivery(number) else { return }
        let notification = delivery.letter.notification
        let state = JournalState(result, isFromStorage: delivery.isFromStorage)
        switch delivery.state {
        case .unstored:
            line.end(number)
            orders.append(.record(state, notification))
            orders.append(.settle(delivery.letter, .accepted))
        case .once:
            line.end(number)
            orders.append(.record(state, notification))
        case .storing:
            line.setState(number, .endedWhileStoring(result))
        case .stored(let sequence):
            line.end(number)
            orders.append(.remove(notification.slot, sequence: sequence, state, notification))
        case .endedWhileStoring:
            break
        }
        catchUp(line, slot.device)
    }

    /// Room may be back: what waited for it is read.
    private mutating func catchUp(_ line: Line, _ device: DeviceNumber) {
        guard line.behindCount > 0, line.isHalfEmpty else { return }
        readOn(line, device, includingPower: !line.isSavingPower)
    }

    private mutating func readOn(_ line: Line, _ device: DeviceNumber, includingPower: Bool) {
        let apps = line.appsBehind(includingPower: includingPower)
        guard !apps.isEmpty else { return }
        for app in apps { line.move(app, to: .reading(newest: nil)) }
        orders.append(.read(apps.map { Slot(device: device, app: $0) }, fence: line.fence))
    }

    /// The device saves power, or no longer does.
    mutating func setSavingPower(_ saving: Bool, device: DeviceNumber, fence: UInt64) {
        guard let line = lines[device], line.fence == fence else { return }
        line.isSavingPower = saving
        if !saving { readOn(line, device, includingPower: true) }
    }

    /// Every connection is to be closed, or one device's.
    mutating func dismiss(_ reason: DismissalReason, only device: DeviceNumber? = nil) {
        for (number, line) in lines where device == nil || device == number {
            orders.append(.dismiss(line.link, reason))
        }
    }

    // What the registry knows.

    func registration(_ slot: Slot) -> Registration? { registrations[slot] }

    /// Takes a registration as the store has it.
    mutating func setRegistration(_ registration: Registration) {
        registrations[registration.slot] = registration
    }

    /// The registration ended: nothing is sent any more, and what was on its way is not stored.
    mutating func endRegistration(_ slot: Slot, at moment: WallTime) {
        registrations[slot]?.isLive = false
        registrations[slot]?.ended = moment
        guard let line = lines[slot.device] else { return }
        line.setGate(slot.app, nil)
        for (number, delivery) in line.unended(of: slot.app) {
            line.end(number)
            if case .unstored = delivery.state {
                orders.append(.recordAndSettle(.discardedUnregistered, delivery.letter))
            }
        }
    }
}
