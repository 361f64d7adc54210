import HeraldModel

/// A delivery that a connection was given and that has not ended.
struct InFlightDelivery {
    let number: DeliveryNumber
    let envelope: Envelope
    let app: AppNumber
    /// Rises with every delivery of the connection.
    let order: UInt64
    let isFromStorage: Bool
    fileprivate(set) var state: DeliveryState
}

/// The deliveries in flight on one connection.
struct InFlightDeliveries {
    private var entries: [InFlightDelivery?] = []
    private var free: [UInt32] = []
    private var nextOrder: UInt64 = 0
    /// Every delivery of a lower order has ended.
    private var oldestOrder: UInt64 = 0
    private(set) var count = 0

    /// The delivery of that number; nil if it has ended.
    subscript(_ number: DeliveryNumber) -> InFlightDelivery? {
        guard number.index < entries.count, let found = entries[Int(number.index)], found.number == number else {
            return nil
        }
        return found
    }

    /// Adds a delivery; one that begins as stored is from storage.
    mutating func add(_ envelope: Envelope, state: DeliveryState) -> DeliveryNumber {
        let index: UInt32
        if let reused = free.popLast() {
            index = reused
        } else {
            index = UInt32(truncatingIfNeeded: entries.count)
            entries.append(nil)
        }
        let number = DeliveryNumber(index: index, stamp: UInt32(truncatingIfNeeded: nextOrder))
        let isFromStorage = if case .stored = state { true } else { false }
        entries[Int(index)] = InFlightDelivery(
            number: number,
            envelope: envelope,
            app: envelope.notification.slot.app,
            order: nextOrder,
            isFromStorage: isFromStorage,
            state: state
        )
        nextOrder += 1
        count += 1
        return number
    }

    /// Applies an event to a delivery that was just looked up; one that ends is removed.
    mutating func apply(_ event: DeliveryEvent, to delivery: InFlightDelivery) -> EnvelopeEffect? {
        let (next, effect) = delivery.state.after(event)
        if case .ended = next { remove(delivery) } else { entries[Int(delivery.number.index)]?.state = next }
        return effect
    }

    private mutating func remove(_ delivery: InFlightDelivery) {
        entries[Int(delivery.number.index)] = nil
        free.append(delivery.number.index)
        count -= 1
        if count == 0 {
            oldestOrder = nextOrder
        } else if delivery.order == oldestOrder {
            oldestOrder += 1
        }
    }

    /// Whether a delivery of a lower order may be in flight.
    ///
    /// Never while a device acknowledges in the order of arrival ([MQTT-4.6.0-2]).
    func mayHaveOlder(than delivery: InFlightDelivery) -> Bool { delivery.order > oldestOrder }

    /// All deliveries, or those of one app, in the order in which they were added.
    func inOrder(of app: AppNumber? = nil) -> [InFlightDelivery] {
        var found: [InFlightDelivery] = []
        for case let entry? in entries where app == nil || entry.app == app { found.append(entry) }
        return found.sorted { $0.order < $1.order }
    }

    func delivery(of envelope: Envelope) -> InFlightDelivery? {
        for case let entry? in entries where entry.envelope === envelope { return entry }
        return nil
    }

    /// Whether a stored notification is in flight: it may be, before the store has reported its sequence.
    func contains(_ stored: StoredNotification) -> Bool {
        let (app, id) = (stored.notification.slot.app, stored.notification.uniqueID)
        return entries.contains { $0?.app == app && $0?.envelope.notification.uniqueID == id }
    }
}
