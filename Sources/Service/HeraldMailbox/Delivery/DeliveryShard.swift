import HeraldModel

/// One share of the devices: their registrations, their connections, and what is in flight to them.
///
/// Decides what happens to each notification. Never waits, reads no clock, and knows no socket or database. The post office
/// holds a lock around each call, and performs the effects for one slot in the order given.
struct DeliveryShard {
    var slots = SlotTable()
    private(set) var connections: [DeviceNumber: DeviceConnection] = [:]
    private var tokens: DeviceTokenCheck
    var holdRules: HoldRules
    private var grace = AcknowledgementGrace()
    /// Slots that are blocked until a moment.
    private(set) var holds = DueQueue()
    /// Deliveries whose connection ended before the store confirmed them; the store removes them then.
    private(set) var detached: [ObjectIdentifier: DeliveryState] = [:]
    /// The number of the last read; no two have the same.
    private(set) var lastRead: UInt64 = 0
    /// Decided and not performed yet.
    private(set) var effects: [DeliveryEffect] = []

    init(
        inFlightLimit: Int,
        budget: BackgroundBudget = BackgroundBudget(),
        rates: TokenRateLimiter = TokenRateLimiter()
    ) {
        holdRules = HoldRules(inFlightLimit: inFlightLimit, budget: budget)
        tokens = DeviceTokenCheck(rates: rates)
    }

    /// Whether a delivery waits for its acknowledgement before it is stored.
    var isAwaitingAcknowledgements: Bool { !grace.isEmpty }

    mutating func clearEffects() { effects.removeAll(keepingCapacity: true) }

    // MARK: - Posting

    /// Decides about a notification; one posted as `discarded` is only journaled, if its token is valid.
    ///
    /// `isHeldElsewhere` tells whether another node holds a device that is not connected here.
    mutating func post(
        _ envelope: Envelope,
        discarded: JournalState? = nil,
        isHeldElsewhere: @autoclosure () -> Bool = false
    ) -> PostDecision {
        let slot = envelope.notification.slot
        let index = slots.index(of: slot)
        let registration = slots.registration(at: index)
        if let refusal = tokens.refusal(of: envelope, registration: registration) { return refusal }
        add(.record(.received), to: envelope)
        guard discarded == nil, let index, registration?.isEnabled == true else {
            add(.recordThenAccept(discarded ?? .discardedDisabled), to: envelope)
            return .pending
        }
        guard envelope.notification.storedUntil != nil else { return postOnce(envelope) }
        let connection = connections[slot.device]
        if let connection, let gate = connection.gates[slot.app] {
            post(envelope, on: connection, gate)
        } else {
            slots.addUnconfirmedWrite(at: index)
            let reason = connection?.reasonWithoutGate(of: slot.app)
            add(.store(reason ?? (isHeldElsewhere() ? .beforeDelivery : .deviceOffline), nil), to: envelope)
        }
        return .pending
    }

    private mutating func post(_ envelope: Envelope, on connection: DeviceConnection, _ gate: AppGate) {
        let slot = envelope.notification.slot
        let now = envelope.notification.received
        let hold = holdRules.hold(envelope.notification, on: connection, at: now)
        if case .direct = gate.state {
            if hold == nil, !holdRules.storesFirst, gate.qualityOfService > 0, gate.unconfirmedWrites == 0 {
                let number = deliver(envelope, on: connection, gate, state: .unstored, at: now)
                return grace.add(PutTag(fence: connection.fence, delivery: number), of: slot.device)
            }
            if let hold { block(slot, on: connection, for: hold) }
        }
        // The store keeps the newest write: what was sent before is stored before.
        storeUnstored(of: slot.app, on: connection)
        let reason = hold.map { StoreReason($0.reason) } ?? (holdRules.storesFirst ? .beforeDelivery : .backlog)
        effects.append(.envelope(envelope, .store(reason, connection.addUnconfirmedWrite(slot.app))))
        envelope.note(JournalState(stored: reason), next: hold?.until)
    }

    /// Stores every delivery that stayed unacknowledged for one full tick.
    mutating func tick() {
        for (device, tag) in grace.tick() {
            guard let connection = connection(device, tag.fence),
                let delivery = tag.delivery.flatMap({ connection.inFlight[$0] })
            else { continue }
            apply(.storageDue(tag), to: delivery, on: connection)
        }
    }

    private mutating func storeUnstored(of app: AppNumber, on connection: DeviceConnection) {
        for delivery in connection.inFlight.inOrder(of: app) {
            apply(.storageDue(PutTag(fence: connection.fence, delivery: delivery.number)), to: delivery, on: connection)
        }
    }

    // MARK: - Connections

    /// Attaches a connection of a device; the newer of two takes over.
    mutating func attach(_ device: DeviceNumber, link: any DeviceLink, isSavingPower: Bool, fence: UInt64) {
        switch Takeover(of: connections[device], byFence: fence) {
        case .firstConnection: break
        case .replaces(let old):
            effects.append(.dismiss(old.link, .takenOver))
            endDeliveries(of: old)
        case .comesTooLate: return effects.append(.dismiss(link, .takenOver))
        }
        connections[device] = DeviceConnection(device, link: link, fence: fence, isSavingPower: isSavingPower)
    }

    /// Detaches a connection that is gone: what it has not acknowledged waits in the store.
    mutating func detach(_ device: DeviceNumber, fence: UInt64) {
        guard let connection = connection(device, fence) else { return }
        connections[device] = nil
        endDeliveries(of: connection)
    }

    private mutating func endDeliveries(of connection: DeviceConnection) {
        for (app, gate) in connection.gates {
            slots.addUnconfirmedWrites(gate.unconfirmedWrites, Slot(device: connection.device, app: app))
        }
        for delivery in connection.inFlight.inOrder() {
            let slot = Slot(device: connection.device, app: delivery.app)
            let isEnabled = slots.registration(slot)?.isEnabled ?? true
            let (next, effect) = delivery.state.after(.connectionLost(isEnabled: isEnabled))
            if let effect { add(effect, to: delivery.envelope) }
            guard next.isBeingStored else { continue }
            slots.addUnconfirmedWrites(1, slot)
            if next != .storing { detached[ObjectIdentifier(delivery.envelope)] = next }
        }
    }

    /// The connection of a device; nil if it is gone, or a newer one took over.
    func connection(_ device: DeviceNumber, _ fence: UInt64) -> DeviceConnection? {
        guard let connection = connections[device], connection.fence == fence else { return nil }
        return connection
    }

    /// Opens the gates of apps; the mailbox is read first.
    mutating func open(_ apps: [AppSubscription], on device: DeviceNumber, fence: UInt64) {
        guard let connection = connection(device, fence) else { return }
        var opened: [AppNumber] = []
        for app in apps {
            let slot = Slot(device: device, app: app.number)
            let isNew = connection.gates[app.number] == nil
            connection.openGate(app, unconfirmedWrites: isNew ? slots.takeUnconfirmedWrites(slot) : 0)
            if isNew { opened.append(app.number) }
        }
        read(opened, on: connection)
    }

    /// Closes an app's gate; what was sent may still be acknowledged.
    mutating func close(_ slot: Slot, fence: UInt64, awaitsToken: Bool = false) {
        guard let connection = connection(slot.device, fence) else { return }
        slots.addUnconfirmedWrites(connection.closeGate(slot.app, awaitsToken: awaitsToken), slot)
        storeUnstored(of: slot.app, on: connection)
    }

    /// Ends a delivery that the courier has finished.
    mutating func finished(_ slot: Slot, fence: UInt64, delivery number: DeliveryNumber, result: DeliveryResult) {
        let connection = connection(slot.device, fence)
        guard let connection, let delivery = connection.inFlight[number] else { return }
        let state = JournalState(result, isFromStorage: delivery.isFromStorage)
        delivery.envelope.note(state)
        apply(.finished(state), to: delivery, on: connection)
        if case .unstored = delivery.state, connection.inFlight.mayHaveOlder(than: delivery) {
            for older in OvertakenDeliveries(by: delivery, in: connection.inFlight).deliveries {
                apply(.newerAcknowledged(delivery.envelope.notification.id), to: older, on: connection)
            }
        }
        catchUpIfRoom(connection)
    }

    /// Sets whether a device saves power; what waited for power is read when it no longer does.
    mutating func setSavingPower(_ saving: Bool, device: DeviceNumber, fence: UInt64) {
        guard let connection = connection(device, fence) else { return }
        connection.isSavingPower = saving
        if !saving { read(connection.blockedApps(includingPower: true), on: connection) }
    }

    /// Dismisses every connection, or one device's.
    mutating func dismiss(_ reason: DismissalReason, only device: DeviceNumber? = nil) {
        for connection in connections.values where device == nil || device == connection.device {
            effects.append(.dismiss(connection.link, reason))
        }
    }

    // MARK: - Reports of the store

    /// A write is durable.
    mutating func stored(_ put: StoredPut) {
        let slot = put.envelope.notification.slot
        if put.isReplaced, put.envelope.status?.state.isStored ?? true { put.envelope.note(.replaced) }
        add(.settle(.accepted), to: put.envelope)
        let connection = connections[slot.device]
        let index = slots.index(of: slot)
        let isLive = slots.registration(at: index)?.isLive(in: put.envelope.generation) ?? false
        let number = put.tag?.fence == connection?.fence ? put.tag?.delivery : nil
        let delivery = number.flatMap { connection?.inFlight[$0] }
        if delivery == nil { confirmWrite(slot, index, connection) }
        let event = DeliveryEvent.stored(sequence: put.sequence, isReplaced: put.isReplaced)
        if endDetached(put.envelope, event) { return }
        guard put.isReplaced || isLive else {
            // Written while the app was being removed: a later registration gets none of it.
            add(.remove(sequence: put.sequence, .discardedUnregisteredFromStorage), to: put.envelope)
            return
        }
        guard let connection else { return }
        if let delivery {
            connection.noteSequence(put.sequence, app: slot.app)
            apply(event, to: delivery, on: connection)
        } else if number == nil, !put.isReplaced {
            // A notification replaced in the same commit is not sent: its successor is reported next.
            deliverStored(put, on: connection, at: put.envelope.notification.received)
        }
        catchUpIfRoom(connection)
    }

    /// Delivers a notification that was stored before it was sent.
    mutating func deliverStored(_ put: StoredPut, on connection: DeviceConnection, at now: WallTime) {
        let slot = put.envelope.notification.slot
        guard connection.noteStored(put.sequence, app: slot.app), let gate = connection.gates[slot.app] else { return }
        if case .catchingUp(let read, _) = gate.state {
            return connection.moveGate(slot.app, to: .catchingUp(read: read, newest: put))
        }
        // The newest of the slot in the store's own order: nothing older waits behind it.
        let hold = deliverStored(StoredNotification(put), on: connection, gate, at: now)
        // A hold that was known when it was posted is on record.
        guard let hold, put.envelope.status?.state ?? .storedBeforeDelivery == .storedBeforeDelivery else { return }
        let state = JournalState(stored: StoreReason(hold.reason))
        put.envelope.note(state, next: hold.until)
        add(.record(state), to: put.envelope)
    }

    /// A write failed, and nothing of it is kept, or its outcome is unknown; what the device did all the same counts.
    mutating func couldNotStore(_ envelope: Envelope, _ outcome: CompletionOutcome) {
        let slot = envelope.notification.slot
        let connection = connections[slot.device]
        if let connection, let delivery = connection.inFlight.delivery(of: envelope) {
            apply(.storeFailed, to: delivery, on: connection)
            return catchUpIfRoom(connection)
        }
        confirmWrite(slot, slots.index(of: slot), connection)
        if !endDetached(envelope, .storeFailed) { add(.settle(outcome), to: envelope) }
    }

    /// Counts the report of a write that is not a delivery of the device's connection.
    private mutating func confirmWrite(_ slot: Slot, _ index: SlotTable.Index?, _ connection: DeviceConnection?) {
        if connection?.confirmWrite(slot.app) != true { slots.confirmWrite(at: index) }
    }

    /// Applies the store's report to a delivery whose connection is gone.
    /// - Returns: Whether there is such a delivery.
    private mutating func endDetached(_ envelope: Envelope, _ event: DeliveryEvent) -> Bool {
        guard let state = detached.removeValue(forKey: ObjectIdentifier(envelope)) else { return false }
        if let effect = state.after(event).effect { add(effect, to: envelope) }
        return true
    }

    // MARK: - Catching up

    /// The stored notifications of slots have been read; the gate of a slot without one opens.
    mutating func haveRead(_ slots: [Slot], found: [StoredNotification], number: UInt64, now: WallTime) {
        let bySlot = Dictionary(found.lazy.map { ($0.notification.slot, $0) }) { $1 }
        for slot in slots {
            guard let connection = connections[slot.device], let gate = connection.gates[slot.app],
                case .catchingUp(number, let newest) = gate.state
            else { continue }
            let generation = self.slots.registration(slot)?.generation
            var stored = bySlot[slot].flatMap { $0.generation == generation ? $0 : nil }
            if let newest, newest.sequence > stored?.sequence ?? 0 { stored = StoredNotification(newest) }
            if let stored, stored.sequence > gate.lastSequence, !connection.inFlight.contains(stored) {
                deliverStored(stored, on: connection, gate, at: now)
            } else {
                connection.moveGate(slot.app, to: .direct)
            }
        }
    }

    /// Delivers, discards or holds the newest notification of a slot.
    /// - Returns: The hold, if it is held.
    @discardableResult
    private mutating func deliverStored(
        _ stored: StoredNotification,
        on connection: DeviceConnection,
        _ gate: AppGate,
        at now: WallTime
    ) -> Hold? {
        let slot = stored.notification.slot
        let isEnabled = slots.registration(slot)?.isEnabled ?? false
        connection.noteStored(stored.sequence, app: slot.app)
        if isEnabled, !holdRules.isExpired(stored.notification, at: now) {
            if let hold = holdRules.holdOfStored(stored.notification, on: connection, at: now) {
                block(slot, on: connection, for: hold)
                return hold
            }
            connection.noteSequence(stored.sequence, app: slot.app)
            deliver(stored.envelope, on: connection, gate, state: .stored(sequence: stored.sequence), at: now)
        } else {
            let state: JournalState = isEnabled ? .discardedExpiredFromStorage : .discardedDisabledFromStorage
            add(.remove(sequence: stored.sequence, state), to: stored.envelope)
        }
        connection.moveGate(slot.app, to: .direct)
        return nil
    }

    /// The stored notifications of slots could not be read: they are read again at the next release.
    mutating func couldNotRead(_ slots: [Slot], number: UInt64) {
        for slot in slots {
            guard let connection = connections[slot.device],
                case .catchingUp(number, _)? = connection.gates[slot.app]?.state
            else { continue }
            block(slot, on: connection, for: Hold(reason: .room, until: WallTime(milliseconds: 0)))
        }
    }

    /// Blocks an app until the reason of a hold is gone.
    private mutating func block(_ slot: Slot, on connection: DeviceConnection, for hold: Hold) {
        connection.moveGate(slot.app, to: .blocked(hold.reason))
        if let until = hold.until { holds.set(slot, due: until) }
    }

    /// Reads up to `limit` slots whose hold is over, or that could not be read; the others have their turn next time.
    mutating func release(at now: WallTime, limit: Int) {
        let due = Dictionary(grouping: holds.take(dueAt: now, limit: limit), by: \.device)
        for (device, slots) in due.sorted(by: { $0.key.value < $1.key.value }) {
            guard let connection = connections[device] else { continue }
            read(slots.map(\.app).filter { connection.gates[$0]?.isBlocked ?? false }, on: connection)
        }
    }

    /// Reads what waits for the clock, after a jump.
    mutating func releaseWithheld() {
        for connection in connections.values { read(connection.appsHeldByClock, on: connection) }
    }

    /// Reads what waits for room, once there is enough of it that a read is worthwhile.
    mutating func catchUpIfRoom(_ connection: DeviceConnection) {
        guard connection.isBlocked, connection.inFlight.count <= holdRules.inFlightLimit / 2 else { return }
        read(connection.blockedApps(includingPower: !connection.isSavingPower), on: connection)
    }

    private mutating func read(_ apps: [AppNumber], on connection: DeviceConnection) {
        guard !apps.isEmpty else { return }
        lastRead += 1
        let registered = apps.map { app in
            connection.moveGate(app, to: .catchingUp(read: lastRead, newest: nil))
            let slot = Slot(device: connection.device, app: app)
            return RegisteredSlot(slot, generation: slots.registration(slot)?.generation ?? 0)
        }
        effects.append(.read(registered, number: lastRead))
    }

    // MARK: - Effects

    mutating func apply(_ event: DeliveryEvent, to one: InFlightDelivery, on connection: DeviceConnection) {
        if let effect = connection.inFlight.apply(event, to: one) { add(effect, to: one.envelope) }
    }

    mutating func add(_ effect: EnvelopeEffect, to envelope: Envelope) {
        if let status = effect.status { envelope.note(status) }
        effects.append(.envelope(envelope, effect))
    }

    @discardableResult
    mutating func deliver(
        _ envelope: Envelope,
        on connection: DeviceConnection,
        _ gate: AppGate,
        state: DeliveryState,
        at now: WallTime
    ) -> DeliveryNumber {
        let notification = envelope.notification
        if notification.pushType == .background { holdRules.budget.charge(notification, at: now) }
        let delivery = connection.add(envelope, qualityOfService: gate.qualityOfService, state: state)
        effects.append(.deliver(connection.link, delivery))
        return delivery.number
    }
}
