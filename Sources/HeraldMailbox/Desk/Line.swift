import HeraldModel

/// What is on its way to one connected device, and which of its apps may be sent to directly.
///
/// The courier keeps packet identifiers and the window; a line knows only what has been handed over and has not ended.
/// A class, since it is changed in place with every notification; it never leaves the lock of its ``Desk``.
final class Line {
    /// A notification that has been handed to the courier and has not ended.
    struct Outstanding {
        let letter: Letter
        let app: AppNumber
        /// Rises with every delivery of the line; gives the order in which they were handed over.
        let order: UInt64
        let isFromStorage: Bool
        var state: State
        let stamp: UInt32

        enum State {
            /// Not stored: it will be if the device takes too long, or goes away.
            case unstored
            /// On its way into the store.
            case storing
            /// The store has it, under this sequence.
            case stored(UInt64)
            /// The device has ended it while it was on its way into the store.
            case endedWhileStoring(DeliveryResult)
            /// Not to be stored at all.
            case once
            /// A newer one of the app was acknowledged first: not in the store any more, and never again.
            case overtaken
            /// The same, on its way into the store.
            case overtakenWhileStoring(by: NotificationID)

            /// Whether the store has yet to report it.
            var isInStoresHands: Bool {
                switch self {
                case .storing, .endedWhileStoring, .overtakenWhileStoring: true
                case .unstored, .stored, .once, .overtaken: false
                }
            }
        }
    }

    /// What keeps a notification from a device that is there.
    enum Obstacle: Hashable {
        /// The device has as many unacknowledged notifications as it may.
        case room
        /// The device saves power.
        case power
        /// The app has had as many background notifications as it may.
        case budget
    }

    /// Whether notifications for an app go straight to the device.
    struct Gate {
        enum State {
            /// Nothing older waits: what arrives is delivered.
            case open
            /// What waits is being read; what arrives is stored, and the newest stored is remembered.
            case reading(newest: StoredPut?)
            /// Something older waits in the store for an obstacle to go: what arrives is stored first.
            case behind(Obstacle)
        }

        var state: State
        var qualityOfService: UInt8
        /// Puts that were not sent before on this connection and that the store has not reported, those from before the
        /// connection too: what arrives meanwhile is stored behind them.
        var pendingPuts: UInt32 = 0
        /// The newest of the store's sequences that was delivered on this connection: nothing is sent twice.
        var lastSequence: UInt64 = 0
    }

    let link: any DeviceLink
    let fence: UInt64
    var isSavingPower: Bool
    private(set) var gates: [AppNumber: Gate] = [:]
    private var outstanding: [Outstanding?] = []
    private var free: [UInt32] = []
    private var nextOrder: UInt64 = 0
    /// No delivery that was handed over before this one is outstanding.
    private var oldestOrder: UInt64 = 0
    private(set) var outstandingCount = 0
    private(set) var behindCount = 0
    private let limit: Int

    init(link: any DeviceLink, fence: UInt64, isSavingPower: Bool, limit: Int) {
        self.link = link
        self.fence = fence
        self.isSavingPower = isSavingPower
        self.limit = limit
    }

    /// Whether enough has ended that reading on from the store is worth its while.
    var isHalfEmpty: Bool { outstandingCount <= limit / 2 }

    /// Whether a notification of this priority may go out now.
    func permits(_ priority: Priority) -> Bool {
        !isSavingPower || priority == .immediate
    }

    func gate(_ app: AppNumber) -> Gate? { gates[app] }

    /// Notes that this sequence is on its way to the device.
    func noteSequence(_ sequence: UInt64, app: AppNumber) {
        guard let gate = gates[app], gate.lastSequence < sequence else { return }
        gates[app]?.lastSequence = sequence
    }

    /// Something for the app is stored before it is sent.
    /// - Returns: What the store's report is known by.
    func notePut(_ app: AppNumber) -> PutTag {
        gates[app]?.pendingPuts += 1
        return PutTag(fence: fence, delivery: nil)
    }

    /// The store has reported a put of ``notePut(_:)``, or one that the gate took over.
    /// - Returns: Whether there is a gate.
    func notePutDone(_ app: AppNumber) -> Bool {
        guard let gate = gates[app] else { return false }
        if gate.pendingPuts > 0 { gates[app]?.pendingPuts -= 1 }
        return true
    }

    /// Sets or changes a gate; nil takes it away.
    func setGate(_ app: AppNumber, _ gate: Gate?) {
        if case .behind? = gates[app]?.state { behindCount -= 1 }
        gates[app] = gate
        if case .behind? = gate?.state { behindCount += 1 }
    }

    /// Moves a gate to another state; nothing happens if the app has none.
    func move(_ app: AppNumber, to state: Gate.State) {
        guard var gate = gates[app] else { return }
        gate.state = state
        setGate(app, gate)
    }

    /// The apps whose older notifications wait for room, and those that wait for power too if `includingPower`.
    ///
    /// What waits for a budget waits for the clock.
    func appsBehind(includingPower: Bool) -> [AppNumber] {
        gates.compactMap { app, gate in
            guard case .behind(let obstacle) = gate.state else { return nil }
            return obstacle == .room || (includingPower && obstacle == .power) ? app : nil
        }
    }

    /// Notes a delivery; the caller hands it to the link.
    func hand(
        _ letter: Letter,
        app: AppNumber,
        state: Outstanding.State,
        isFromStorage: Bool,
        qualityOfService: UInt8
    ) -> Delivery {
        let index: UInt32
        if let reused = free.popLast() {
            index = reused
        } else {
            index = UInt32(truncatingIfNeeded: outstanding.count)
            outstanding.append(nil)
        }
        let stamp = UInt32(truncatingIfNeeded: nextOrder)
        outstanding[Int(index)] = Outstanding(
            letter: letter,
            app: app,
            order: nextOrder,
            isFromStorage: isFromStorage,
            state: state,
            stamp: stamp
        )
        nextOrder += 1
        outstandingCount += 1
        return Delivery(
            number: DeliveryNumber(index: index, stamp: stamp),
            letter: letter,
            app: app,
            qualityOfService: qualityOfService
        )
    }

    /// The delivery of that number, if it has not ended.
    func delivery(_ number: DeliveryNumber) -> Outstanding? {
        guard number.index < outstanding.count, let found = outstanding[Int(number.index)], found.stamp == number.stamp
        else { return nil }
        return found
    }

    func setState(_ number: DeliveryNumber, _ state: Outstanding.State) {
        guard delivery(number) != nil else { return }
        outstanding[Int(number.index)]?.state = state
    }

    /// Forgets a delivery.
    func end(_ number: DeliveryNumber) {
        guard let delivery = delivery(number) else { return }
        outstanding[Int(number.index)] = nil
        free.append(number.index)
        outstandingCount -= 1
        if outstandingCount == 0 {
            oldestOrder = nextOrder
        } else if delivery.order == oldestOrder {
            oldestOrder += 1
        }
    }

    /// Whether something that was handed over before may be outstanding; never, while a device acknowledges in the order
    /// of arrival, as [MQTT-4.6.0-2] has it.
    func mayHaveOlder(than delivery: Outstanding) -> Bool { delivery.order > oldestOrder }

    /// All that has not ended, in the order in which it was handed over; of one app, or of all.
    func unended(of app: AppNumber? = nil) -> [(DeliveryNumber, Outstanding)] {
        var found: [(DeliveryNumber, Outstanding)] = []
        for (index, entry) in outstanding.enumerated() {
            guard let entry, app == nil || entry.app == app else { continue }
            found.append((DeliveryNumber(index: UInt32(truncatingIfNeeded: index), stamp: entry.stamp), entry))
        }
        return found.sorted { $0.1.order < $1.1.order }
    }
}
