import HeraldModel

/// One device's connection: the deliveries in flight, and a gate for each app that it subscribed to.
///
/// The courier keeps packet identifiers and the window. A class, because it changes in place with every notification; it
/// never leaves the lock of its ``DeliveryShard``.
final class DeviceConnection {
    let device: DeviceNumber
    let link: any DeviceLink
    let fence: UInt64
    var isSavingPower: Bool
    var inFlight = InFlightDeliveries()
    private(set) var gates: [AppNumber: AppGate] = [:]
    private var blockedCount = 0
    /// The apps without a gate whose token the device has to present first.
    private var awaitedTokens: Set<AppNumber> = []

    init(_ device: DeviceNumber, link: any DeviceLink, fence: UInt64, isSavingPower: Bool) {
        self.device = device
        self.link = link
        self.fence = fence
        self.isSavingPower = isSavingPower
    }

    /// Whether a gate is blocked.
    var isBlocked: Bool { blockedCount > 0 }

    /// Adds a delivery; the caller hands it to the link.
    func add(_ envelope: Envelope, qualityOfService: UInt8, state: DeliveryState) -> Delivery {
        Delivery(
            number: inFlight.add(envelope, state: state),
            envelope: envelope,
            app: envelope.notification.slot.app,
            qualityOfService: qualityOfService
        )
    }

    /// Opens the gate of an app, which reads the mailbox first, or changes the quality of service of an open one.
    func openGate(_ app: AppSubscription, unconfirmedWrites: UInt32) {
        var gate = gates[app.number] ?? AppGate(unconfirmedWrites: unconfirmedWrites)
        gate.qualityOfService = app.qualityOfService
        awaitedTokens.remove(app.number)
        setGate(app.number, gate)
    }

    private func setGate(_ app: AppNumber, _ gate: AppGate?) {
        if gates[app]?.isBlocked ?? false { blockedCount -= 1 }
        gates[app] = gate
        if gate?.isBlocked ?? false { blockedCount += 1 }
    }

    /// Whether an app without a gate waits for its token.
    func awaitsToken(of app: AppNumber) -> Bool { awaitedTokens.contains(app) }

    /// The reason for which an app without a gate gets nothing.
    func reasonWithoutGate(of app: AppNumber) -> StoreReason { awaitsToken(of: app) ? .tokenMissing : .notSubscribed }

    /// Closes the gate of an app, for good or until the device presents the app's token.
    /// - Returns: The unconfirmed writes that it tracked.
    func closeGate(_ app: AppNumber, awaitsToken: Bool = false) -> UInt32 {
        if awaitsToken { awaitedTokens.insert(app) } else { awaitedTokens.remove(app) }
        defer { setGate(app, nil) }
        return gates[app]?.unconfirmedWrites ?? 0
    }

    /// Moves a gate to another state; nothing happens if the app has none.
    func moveGate(_ app: AppNumber, to state: AppGate.State) {
        guard var gate = gates[app] else { return }
        gate.state = state
        setGate(app, gate)
    }

    /// Notes that this sequence is on its way to the device.
    func noteSequence(_ sequence: UInt64, app: AppNumber) {
        guard let gate = gates[app], gate.lastSequence < sequence else { return }
        gates[app]?.lastSequence = sequence
    }

    /// Notes that this sequence is stored.
    /// - Returns: Whether nothing newer of the app is known.
    @discardableResult
    func noteStored(_ sequence: UInt64, app: AppNumber) -> Bool {
        guard let gate = gates[app], max(gate.newestStored, gate.lastSequence) < sequence else { return false }
        gates[app]?.newestStored = sequence
        return true
    }

    /// Counts a write of a notification that is stored before it is sent.
    /// - Returns: The tag by which the store's report is recognized.
    func addUnconfirmedWrite(_ app: AppNumber) -> PutTag {
        gates[app]?.unconfirmedWrites += 1
        return PutTag(fence: fence, delivery: nil)
    }

    /// Counts the store's report of a write that a gate tracks.
    /// - Returns: Whether there is a gate.
    func confirmWrite(_ app: AppNumber) -> Bool {
        guard let gate = gates[app] else { return false }
        if gate.unconfirmedWrites > 0 { gates[app]?.unconfirmedWrites -= 1 }
        return true
    }

    /// The apps, by number, that wait for the clock: without budget, or with a notification that looks expired after a jump.
    var appsHeldByClock: [AppNumber] {
        gates.compactMap { app, gate in
            switch gate.state {
            case .blocked(.expiry), .blocked(.budget): app
            case .direct, .catchingUp, .blocked: nil
            }
        }.sorted { $0.value < $1.value }
    }

    /// The apps, by number, that are blocked for want of room, and with `includingPower` those that wait for power too.
    ///
    /// Apps without budget wait for the clock.
    func blockedApps(includingPower: Bool) -> [AppNumber] {
        gates.compactMap { app, gate in
            guard case .blocked(let reason) = gate.state else { return nil }
            return reason == .room || (includingPower && reason == .power) ? app : nil
        }.sorted { $0.value < $1.value }
    }
}
