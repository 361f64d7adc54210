import HeraldMailbox
import HeraldModel
import Testing

@testable import HeraldCourier

struct DeliveryWindowTests {
    @Test func `[MQTT-3.3.4-9] [MQTT-4.9.0-2] no more in flight than the receive maximum`() {
        var window = DeliveryWindow(limit: 2)
        for number in 1...5 { window.enqueue(.delivery(Sample.delivery(UInt64(number)))) }
        #expect(takeAll(&window) == [1, 2])
        #expect(window.inFlightCount == 2 && window.queuedCount == 3)
        let done = window.acknowledge(1)
        #expect(done?.notification == 1)
        #expect(takeAll(&window) == [3])
    }

    @Test func `[MQTT-4.6.0-5] what waits goes out in its order`() {
        var window = DeliveryWindow(limit: 1)
        var order: [UInt64] = []
        for number in 1...200 { window.enqueue(.delivery(Sample.delivery(UInt64(number)))) }
        while let departure = window.takeNext() {
            order.append(departure.message.notification)
            _ = window.acknowledge(departure.packetIdentifier ?? 0)
        }
        #expect(order == Array(1...200))
    }

    @Test func `device tokens that wait are dropped when newer ones come, and those in flight stay`() {
        var window = DeliveryWindow(limit: 1)
        let token = DeviceToken(words: (1, 2, 3, 4))
        window.enqueue(.token(AppNumber(1), token, qualityOfService: 1))
        let first = window.takeNext()
        window.enqueue(.delivery(Sample.delivery(5)))
        window.enqueue(.token(AppNumber(2), token, qualityOfService: 1))
        window.dropTokens()
        #expect(window.queuedCount == 1 && window.holdsToken)
        _ = window.acknowledge(first?.packetIdentifier ?? 0)
        #expect(!window.holdsToken)
        #expect(takeAll(&window) == [5])
    }

    @Test func `[MQTT-2.2.1-2] QoS 0 has no packet identifier and no place in the window`() {
        var window = DeliveryWindow(limit: 1)
        window.enqueue(.delivery(Sample.delivery(1)))
        window.enqueue(.delivery(Sample.delivery(2, qualityOfService: 0)))
        let first = window.takeNext()
        let second = window.takeNext()
        #expect(first?.packetIdentifier == 1)
        #expect(second != nil && second?.packetIdentifier == nil)
        #expect(window.inFlightCount == 1)
    }

    @Test func `[MQTT-2.2.1-4] an identifier in flight is not used again`() {
        var window = DeliveryWindow(limit: 100)
        var used: Set<UInt16> = []
        for number in 1...100 {
            window.enqueue(.delivery(Sample.delivery(UInt64(number))))
            let departure = window.takeNext()
            let isNew = used.insert(departure?.packetIdentifier ?? 0).inserted
            #expect(isNew)
        }
        #expect(!used.contains(0))
    }

    @Test(arguments: [UInt16(0), 2, 100, .max])
    func `an acknowledgement of nothing is ignored`(identifier: UInt16) {
        var window = DeliveryWindow(limit: 10)
        window.enqueue(.delivery(Sample.delivery(1)))
        _ = window.takeNext()
        let nothing = window.acknowledge(identifier)
        #expect(nothing == nil)
        let once = window.acknowledge(1)
        let twice = window.acknowledge(1)
        #expect(once != nil && twice == nil)
    }

    @Test func `[MQTT-4.4.0-1] [MQTT-3.3.1-1] a remnant goes out again under its identifier, as a duplicate`() {
        var before = DeliveryWindow(limit: 10)
        for number in 1...4 { before.enqueue(.delivery(Sample.delivery(UInt64(number)))) }
        _ = takeAll(&before)
        _ = before.acknowledge(2)
        #expect(before.remnants.map(\.packetIdentifier) == [1, 3, 4])

        var after = DeliveryWindow(limit: 10)
        after.reserve(before.remnants)
        after.enqueue(.delivery(Sample.delivery(9)))
        after.enqueue(.delivery(Sample.delivery(4)))
        after.enqueue(.delivery(Sample.delivery(4)))
        var departures: [DeliveryWindow.Departure] = []
        while let departure = after.takeNext() { departures.append(departure) }
        #expect(departures.map(\.packetIdentifier) == [2, 4, 5])
        #expect(departures.map(\.isDuplicate) == [false, true, false])
        #expect(after.remnants.count == 5)
    }

    @Test func `remnants do not narrow the window`() {
        let remnants = (1...10).map {
            DeliveryWindow.Remnant(
                notification: NotificationID(high: 0, low: UInt64($0)),
                packetIdentifier: UInt16($0 * 3)
            )
        }
        var window = DeliveryWindow(limit: 4)
        window.reserve(remnants + remnants)
        for number in 100...110 { window.enqueue(.delivery(Sample.delivery(UInt64(number)))) }
        var identifiers: Set<UInt16> = []
        while let departure = window.takeNext() { identifiers.insert(departure.packetIdentifier ?? 0) }
        #expect(identifiers.count == 4)
        #expect(identifiers.isDisjoint(with: remnants.map(\.packetIdentifier)))
    }

    @Test func `what waits for a removed app is dropped, what is in flight stays`() {
        var window = DeliveryWindow(limit: 1)
        for number in 1...3 { window.enqueue(.delivery(Sample.delivery(UInt64(number), app: UInt32(number % 2)))) }
        #expect(takeAll(&window) == [1])
        window.drop(AppNumber(1))
        #expect(window.queuedCount == 1)
        let done = window.acknowledge(1)
        #expect(done != nil)
        #expect(takeAll(&window) == [2])
    }

    private func takeAll(_ window: inout DeliveryWindow) -> [UInt64] {
        var taken: [UInt64] = []
        while let departure = window.takeNext() { taken.append(departure.message.notification) }
        return taken
    }
}

/// Notifications that differ in a number.
enum Sample {
    static func notification(
        _ number: UInt64,
        app: UInt32 = 1,
        storedUntil: WallTime? = WallTime(milliseconds: .max),
        priority: Priority = .immediate,
        collapseID: String? = nil,
        payload: String = #"{"aps":{}}"#
    ) -> Notification {
        Notification(
            id: NotificationID(high: 0, low: number),
            uniqueID: NotificationID(high: 0, low: number),
            slot: Slot(device: SessionBench.device, app: AppNumber(app)),
            received: WallTime(milliseconds: 0),
            storedUntil: storedUntil,
            priority: priority,
            pushType: .alert,
            collapseID: collapseID,
            payload: Array(payload.utf8)
        )
    }

    static func delivery(_ number: UInt64, app: UInt32 = 1, qualityOfService: UInt8 = 1) -> Delivery {
        delivery(notification(number, app: app), qualityOfService: qualityOfService)
    }

    static func delivery(_ notification: Notification, qualityOfService: UInt8 = 1) -> Delivery {
        Delivery(
            number: DeliveryNumber(index: UInt32(truncatingIfNeeded: notification.id.low), stamp: 0),
            letter: Letter(notification),
            app: notification.slot.app,
            qualityOfService: qualityOfService
        )
    }
}

extension DeliveryWindow.Message {
    var notification: UInt64 {
        switch self {
        case .delivery(let delivery): delivery.letter.notification.id.low
        case .token, .broadcast: 0
        }
    }
}
