import HeraldModel

/// What the store reports, and what was read from it.
extension Desk {
    /// A put is durable.
    mutating func stored(_ put: StoredPut) {
        let slot = put.letter.notification.slot
        if put.isReplaced, put.letter.fate?.state.isStored ?? true { put.letter.note(.replaced) }
        orders.append(.settle(put.letter, .accepted))
        let line = lines[slot.device]
        let place = holdings.index(forKey: slot)
        let isLive = place.flatMap { holdings.values[$0].registration?.isLive } ?? false
        let isOfThisConnection = line != nil && put.tag?.fence == line?.fence
        let delivery = isOfThisConnection ? put.tag?.delivery : nil
        if delivery.flatMap({ line?.delivery($0) }) == nil { noteReported(slot, at: place, line) }
        if !departed.isEmpty, let delivery = departed.removeValue(forKey: ObjectIdentifier(put.letter)) {
            return takeAway(put, as: delivery)
        }
        guard put.isReplaced || isLive else {
            // Put when the app was being removed: nothing of it is there for whoever registers again.
            orders.append(.remove(put.letter, sequence: put.sequence, .discardedUnregisteredFromStorage))
            return
        }
        guard let line else { return }
        if let delivery { storedOnItsWay(put, delivery, in: line) } else { storedFirst(put, in: line) }
        catchUp(line, slot.device)
    }

    private mutating func storedOnItsWay(
        _ put: StoredPut,
        _ number: DeliveryNumber,
        in line: Line
    ) {
        guard let delivery = line.delivery(number) else { return }
        switch delivery.state {
        case .storing:
            line.setState(number, .stored(put.sequence))
            line.noteSequence(put.sequence, app: delivery.app)
        case .endedWhileStoring(let result):
            line.end(number)
            let state = JournalState(result, isFromStorage: delivery.isFromStorage)
            orders.append(.remove(put.letter, sequence: put.sequence, state))
        case .overtakenWhileStoring:
            line.setState(number, .overtaken)
            takeAway(put, as: delivery)
        case .unstored, .stored, .once, .overtaken:
            break
        }
    }

    /// Stored although it had ended meanwhile.
    private mutating func takeAway(_ put: StoredPut, as delivery: Line.Outstanding) {
        switch delivery.state {
        case .endedWhileStoring(let result):
            let state = JournalState(result, isFromStorage: delivery.isFromStorage)
            orders.append(.remove(put.letter, sequence: put.sequence, state))
        // What is in its place already is on record as what replaced it.
        case .overtakenWhileStoring(let newer) where !put.isReplaced:
            orders.append(.overtake(put.letter, sequence: put.sequence, by: newer))
        default:
            break
        }
    }

    /// Stored before it was sent: now it may be, unless something newer took its place in the same commit.
    ///
    /// The journal says `replaced` (or that the app was removed), so the device is not sent it; what took its place is
    /// reported next.
    private mutating func storedFirst(_ put: StoredPut, in line: Line) {
        guard !put.isReplaced else { return }
        let app = put.letter.notification.slot.app
        guard let gate = line.gate(app), put.sequence > gate.lastSequence else { return }
        if case .reading(let newest) = gate.state {
            if put.sequence > newest?.sequence ?? 0 { line.move(app, to: .reading(newest: put)) }
            return
        }
        guard registration(put.letter.notification.slot)?.isEnabled ?? false else {
            orders.append(.remove(put.letter, sequence: put.sequence, .discardedDisabledFromStorage))
            return
        }
        let now = put.letter.notification.received
        if let objection = objection(to: put.letter.notification, on: line, at: now) {
            return hold(put.letter.notification.slot, in: line, for: objection)
        }
        // The newest of the slot by the store's own order, so nothing older waits behind it.
        line.move(app, to: .open)
        line.noteSequence(put.sequence, app: app)
        let letter = Letter(put.letter.notification)
        _ = hand(letter, to: line, gate, state: .stored(put.sequence), isFromStorage: true, at: now)
    }

    /// A put failed: nothing of it is kept.
    ///
    /// If the device has acknowledged it all the same, that counts.
    mutating func couldNotStore(_ letter: Letter) {
        let slot = letter.notification.slot
        if !departed.isEmpty, let delivery = departed.removeValue(forKey: ObjectIdentifier(letter)) {
            noteReported(slot, at: holdings.index(forKey: slot), lines[slot.device])
            return endUnstored(delivery)
        }
        let line = lines[slot.device]
        let delivery = line?.unended(of: slot.app).first { _, delivery in delivery.letter === letter }
        guard let line, let (number, found) = delivery else {
            noteReported(slot, at: holdings.index(forKey: slot), line)
            orders.append(.settle(letter, .refused(.serviceUnavailable)))
            return
        }
        switch found.state {
        case .endedWhileStoring:
            line.end(number)
            endUnstored(found)
        case .overtakenWhileStoring:
            line.setState(number, .overtaken)
            endUnstored(found)
        default:
            line.setState(number, .once)
            orders.append(.settle(letter, .refused(.serviceUnavailable)))
        }
    }

    /// It had ended before the store failed to take it, and that counts.
    private mutating func endUnstored(_ delivery: Line.Outstanding) {
        switch delivery.state {
        case .endedWhileStoring(let result):
            let state = JournalState(result, isFromStorage: delivery.isFromStorage)
            orders.append(.record(state, delivery.letter))
            orders.append(.settle(delivery.letter, .accepted))
        case .overtakenWhileStoring(let newer):
            orders.append(.overtakeUnstored(delivery.letter, by: newer))
        default:
            break
        }
    }

    func isConnected(_ device: DeviceNumber) -> Bool { lines[device] != nil }

    /// What waited in slots has been read.
    ///
    /// Empty slots are told of too: their gates open.
    mutating func haveRead(
        _ slots: [Slot],
        found: [StoredNotification],
        fence: UInt64,
        now: WallTime
    ) {
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
        now: WallTime
    ) {
        guard let candidate, candidate.sequence > gate.lastSequence, !isOnItsWay(candidate, in: line) else {
            line.move(slot.app, to: .open)
            return
        }
        let notification = candidate.notification
        let isEnabled = registration(slot)?.isEnabled ?? false
        guard isEnabled, !notification.isExpired(at: now) else {
            line.move(slot.app, to: .open)
            let state: JournalState = isEnabled ? .discardedExpiredFromStorage : .discardedDisabledFromStorage
            orders.append(.remove(Letter(notification), sequence: candidate.sequence, state))
            return
        }
        if let objection = objection(to: notification, on: line, at: now) {
            return hold(slot, in: line, for: objection)
        }
        line.move(slot.app, to: .open)
        line.noteSequence(candidate.sequence, app: slot.app)
        let letter = Letter(notification)
        _ = hand(letter, to: line, gate, state: .stored(candidate.sequence), isFromStorage: true, at: now)
    }

    /// Read from the store before the store's report of it came: it was sent already, under no sequence yet.
    private func isOnItsWay(_ stored: StoredNotification, in line: Line) -> Bool {
        line.unended(of: stored.notification.slot.app).contains { _, delivery in
            delivery.letter.notification.uniqueID == stored.notification.uniqueID
        }
    }

    /// Reading what waits failed; it is tried again with the next chance, and with the next tick of the clock.
    mutating func couldNotRead(_ slots: [Slot], fence: UInt64) {
        for slot in slots {
            guard let line = lines[slot.device], line.fence == fence, case .reading? = line.gate(slot.app)?.state
            else { continue }
            line.move(slot.app, to: .behind(.room))
            holds.set(slot, due: WallTime(milliseconds: 0))
        }
    }
}
