import HeraldModel

/// Whether a connected device may have a notification now, and when else.
extension Desk {
    /// Why a notification waits although its device is there, and until when, where the clock decides.
    struct Objection {
        let obstacle: Line.Obstacle
        let until: WallTime?
    }

    /// What keeps a notification from being handed over; nil for nothing.
    ///
    /// Power comes first: what it keeps back, more room would not send.
    func objection(to notification: Notification, on line: Line, at now: WallTime) -> Objection? {
        let isBackground = notification.pushType == .background
        if !line.permits(notification.priority) {
            let slot = notification.slot
            guard isBackground, notification.priority == .conserving, budget.isNewsstand(slot.app) else {
                return Objection(obstacle: .power, until: nil)
            }
            if let owed = budget.owedFrom(slot, now) { return Objection(obstacle: .power, until: owed) }
        }
        if isBackground, let due = budget.due(notification, at: now) { return Objection(obstacle: .budget, until: due) }
        return hasRoom(line) ? nil : Objection(obstacle: .room, until: nil)
    }

    private func hasRoom(_ line: Line) -> Bool {
        line.outstandingCount < (isPressed ? min(outstandingLimit, Self.pressedLimit) : outstandingLimit)
    }

    /// The app's mailbox waits for what keeps its newest notification back.
    mutating func hold(_ slot: Slot, in line: Line, for objection: Objection) {
        line.move(slot.app, to: .behind(objection.obstacle))
        if let until = objection.until { holds.set(slot, due: until) }
    }

    /// Hands a notification to the device's connection.
    mutating func hand(
        _ letter: Letter,
        to line: Line,
        _ gate: Line.Gate,
        state: Line.Outstanding.State,
        isFromStorage: Bool,
        at now: WallTime
    ) -> DeliveryNumber {
        let notification = letter.notification
        if notification.pushType == .background { budget.charge(notification, at: now) }
        let delivery = line.hand(
            letter,
            app: notification.slot.app,
            state: state,
            isFromStorage: isFromStorage,
            qualityOfService: gate.qualityOfService
        )
        orders.append(.deliver(line.link, delivery))
        return delivery.number
    }

    /// Puts a notification into the store, and notes why for a provider that asks.
    mutating func store(_ letter: Letter, _ reason: StoreReason, _ tag: PutTag? = nil, next: WallTime? = nil) {
        letter.note(JournalState(stored: reason), next: next)
        orders.append(.store(letter, reason, tag))
    }

    /// Reads on where the clock has given an app a new right to a notification, or a read has failed before.
    ///
    /// - Parameters:
    ///   - now: The present.
    ///   - limit: How many apps at the most; the others have their turn with the next call.
    mutating func release(at now: WallTime, limit: Int) {
        var slots: [DeviceNumber: [Slot]] = [:]
        for slot in holds.take(dueAt: now, limit: limit) {
            guard let line = lines[slot.device], case .behind? = line.gate(slot.app)?.state else { continue }
            line.move(slot.app, to: .reading(newest: nil))
            slots[slot.device, default: []].append(slot)
        }
        for (device, slots) in slots {
            guard let line = lines[device] else { continue }
            orders.append(.read(slots, fence: line.fence))
        }
    }
}

extension StoreReason {
    /// Why a notification is stored whose device is there.
    init(_ obstacle: Line.Obstacle) {
        switch obstacle {
        case .room: self = .backlog
        case .power: self = .power
        case .budget: self = .budget
        }
    }
}
