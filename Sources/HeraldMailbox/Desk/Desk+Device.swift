import HeraldModel

/// What a device does: it comes, wants an app's notifications, acknowledges, goes.
extension Desk {
    /// A connection, in place of an older one.
    mutating func attach(
        _ device: DeviceNumber,
        link: any DeviceLink,
        isSavingPower: Bool,
        fence: UInt64
    ) {
        if let old = lines[device] {
            guard old.fence < fence else {
                orders.append(.dismiss(link, .takenOver))
                return
            }
            orders.append(.dismiss(old.link, .takenOver))
            leave(old, device)
        }
        lines[device] = Line(link: link, fence: fence, isSavingPower: isSavingPower, limit: outstandingLimit)
    }

    /// The connection is gone: what it has not acknowledged waits in the store.
    mutating func detach(_ device: DeviceNumber, fence: UInt64) {
        guard let line = lines[device], line.fence == fence else { return }
        lines[device] = nil
        leave(line, device)
    }

    private mutating func leave(_ line: Line, _ device: DeviceNumber) {
        for (app, gate) in line.gates { addStrays(gate.pendingPuts, Slot(device: device, app: app)) }
        for (_, delivery) in line.unended() {
            if delivery.state.isInStoresHands { addStrays(1, delivery.letter.notification.slot) }
            switch delivery.state {
            case .unstored where registration(delivery.letter.notification.slot)?.isEnabled == false:
                orders.append(.recordAndSettle(.discardedDisabled, delivery.letter))
            case .unstored:
                addStrays(1, delivery.letter.notification.slot)
                store(delivery.letter, .unacknowledged)
            case .once:
                orders.append(.record(.discardedDeviceOffline, delivery.letter))
            case .storing, .stored, .overtaken:
                // Stored, or about to be; or need not be.
                break
            case .endedWhileStoring, .overtakenWhileStoring:
                departed[ObjectIdentifier(delivery.letter)] = delivery
            }
        }
    }

    /// The connection wants the notifications of apps: first what waits.
    mutating func open(_ apps: [WantedApp], on device: DeviceNumber, fence: UInt64) {
        guard let line = lines[device], line.fence == fence else { return }
        var opened: [Slot] = []
        for app in apps {
            if var gate = line.gate(app.number) {
                gate.qualityOfService = app.qualityOfService
                line.setGate(app.number, gate)
            } else {
                let slot = Slot(device: device, app: app.number)
                // What is on its way into the store since before is older than what arrives now.
                let puts = takeStrays(slot)
                let gate = Line.Gate(
                    state: .reading(newest: nil),
                    qualityOfService: app.qualityOfService,
                    pendingPuts: puts
                )
                line.setGate(app.number, gate)
                opened.append(slot)
            }
        }
        if !opened.isEmpty { orders.append(.read(opened, fence: fence)) }
    }

    /// The connection no longer wants an app's notifications; what was handed over may still be acknowledged.
    mutating func close(_ slot: Slot, fence: UInt64) {
        guard let line = lines[slot.device], line.fence == fence else { return }
        closeGate(slot, in: line)
        storeUnstored(in: line, app: slot.app)
    }

    /// A delivery has ended.
    mutating func finished(
        _ slot: Slot,
        fence: UInt64,
        delivery number: DeliveryNumber,
        result: DeliveryResult
    ) {
        guard let line = lines[slot.device], line.fence == fence, let delivery = line.delivery(number) else { return }
        let state = JournalState(result, isFromStorage: delivery.isFromStorage)
        switch delivery.state {
        case .unstored:
            line.end(number)
            delivery.letter.note(state)
            orders.append(.record(state, delivery.letter))
            orders.append(.settle(delivery.letter, .accepted))
            if line.mayHaveOlder(than: delivery) { overtake(delivery, in: line) }
        case .once, .overtaken:
            line.end(number)
            orders.append(.record(state, delivery.letter))
        case .storing, .overtakenWhileStoring:
            delivery.letter.note(state)
            line.setState(number, .endedWhileStoring(result))
        case .stored(let sequence):
            line.end(number)
            orders.append(.remove(delivery.letter, sequence: sequence, state))
        case .endedWhileStoring:
            break
        }
        catchUp(line, slot.device)
    }

    /// The device has acknowledged a notification that was never stored, and an older one of the app not: what is stored
    /// of the older gives way, or it would come back from the store after the newer.
    private mutating func overtake(_ newer: Line.Outstanding, in line: Line) {
        let id = newer.letter.notification.id
        var last: (DeliveryNumber, Line.Outstanding)?
        for (number, older) in line.unended(of: newer.app) where older.order < newer.order {
            switch older.state {
            case .stored, .storing:
                // Of several the store holds the last.
                last = (number, older)
            case .unstored:
                line.setState(number, .overtaken)
                orders.append(.overtakeUnstored(older.letter, by: id))
            case .once, .endedWhileStoring, .overtaken, .overtakenWhileStoring:
                break
            }
        }
        guard let (number, older) = last else { return }
        if case .stored(let sequence) = older.state {
            line.setState(number, .overtaken)
            orders.append(.overtake(older.letter, sequence: sequence, by: id))
        } else {
            line.setState(number, .overtakenWhileStoring(by: id))
        }
    }

    /// Room may be back: what waited for it is read.
    mutating func catchUp(_ line: Line, _ device: DeviceNumber) {
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
}
