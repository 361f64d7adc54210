import HeraldModel
import Testing

@testable import HeraldCourier
@testable import HeraldMailbox

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

    @Test func `[MQTT-4.6.0-5] waiting messages are sent in order`() {
        var window = DeliveryWindow(limit: 1)
        var order: [UInt64] = []
        for number in 1...200 { window.enqueue(.delivery(Sample.delivery(UInt64(number)))) }
        while let outgoing = window.takeNext() {
            order.append(outgoing.message.notification)
            _ = window.acknowledge(outgoing.packetIdentifier ?? 0)
        }
        #expect(order == Array(1...200))
    }

    private static func token(
        _ number: UInt64,
        of app: UInt32 = 1,
        qualityOfService: UInt8 = 1
    ) -> DeliveryWindow.Message {
        .token(AppNumber(app), DeviceToken(words: (1, 2, 3, number)), qualityOfService: qualityOfService)
    }

    @Test func `one token waits for each app: a newer one takes its place`() {
        var window = DeliveryWindow(limit: 1)
        window.enqueue(.delivery(Sample.delivery(1)))
        #expect(takeAll(&window) == [1])
        for round in 1...100 {
            for app in 1...3 { window.enqueue(Self.token(UInt64(round), of: UInt32(app))) }
            window.enqueue(.delivery(Sample.delivery(UInt64(round + 1))))
        }
        #expect(window.queuedCount == 103)
        // The places of tokens are right after messages have left and others were dropped.
        window.drop([AppNumber(2)])
        window.enqueue(Self.token(101, of: 3, qualityOfService: 0))
        var tokens: [UInt64] = []
        var identifier: UInt16? = 1
        while let next = identifier {
            _ = window.acknowledge(next)
            identifier = nil
            while let outgoing = window.takeNext() {
                if case .token(_, let token, _) = outgoing.message { tokens.append(token.words.3) }
                identifier = outgoing.packetIdentifier ?? identifier
            }
        }
        #expect(tokens == [100, 101])
        #expect(window.queuedCount == 0 && !window.holdsToken)
    }

    @Test func `a token that is in flight is not queued again, and another one of its app is`() {
        var window = DeliveryWindow(limit: 4)
        window.enqueue(Self.token(1))
        let first = window.takeNext()?.packetIdentifier ?? 0
        for _ in 1...100 { window.enqueue(Self.token(1)) }
        #expect(window.queuedCount == 0 && window.holdsToken)
        window.enqueue(Self.token(2))
        let second = window.takeNext()?.packetIdentifier ?? 0
        window.enqueue(Self.token(2))
        #expect(window.queuedCount == 0)
        // The device has the newer one only when that is acknowledged.
        _ = window.acknowledge(first)
        #expect(window.holdsToken)
        _ = window.acknowledge(second)
        #expect(!window.holdsToken)
        window.enqueue(Self.token(2))
        #expect(window.queuedCount == 1)
    }

    @Test func `the place of a token is right however many messages have left`() {
        var window = DeliveryWindow(limit: 500)
        for number in 1...100 { window.enqueue(.delivery(Sample.delivery(UInt64(number)))) }
        for app in 1...100 { window.enqueue(Self.token(1, of: UInt32(app))) }
        for _ in 1...150 { _ = window.takeNext() }
        for app in 51...100 { window.enqueue(Self.token(2, of: UInt32(app))) }
        #expect(window.queuedCount == 50)
        var tokens: [UInt64] = []
        while case .token(_, let token, _)? = window.takeNext()?.message { tokens.append(token.words.3) }
        #expect(tokens == Array(repeating: 2, count: 50))
    }

    @Test func `[MQTT-2.2.1-2] a message at QoS 0 has no packet identifier and takes no room in the window`() {
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
            let outgoing = window.takeNext()
            let isNew = used.insert(outgoing?.packetIdentifier ?? 0).inserted
            #expect(isNew)
        }
        #expect(!used.contains(0))
    }

    @Test(arguments: [UInt16(0), 2, 100, .max])
    func `an acknowledgement of an unused identifier is ignored`(identifier: UInt16) {
        var window = DeliveryWindow(limit: 10)
        window.enqueue(.delivery(Sample.delivery(1)))
        _ = window.takeNext()
        let nothing = window.acknowledge(identifier)
        #expect(nothing == nil)
        let once = window.acknowledge(1)
        let twice = window.acknowledge(1)
        #expect(once != nil && twice == nil)
    }

    @Test
    func
        `[MQTT-4.4.0-1] [MQTT-3.3.1-1] an unacknowledged notification is sent again under its identifier, as a duplicate`()
    {
        var before = DeliveryWindow(limit: 10)
        for number in 1...4 { before.enqueue(.delivery(Sample.delivery(UInt64(number)))) }
        _ = takeAll(&before)
        _ = before.acknowledge(2)
        #expect(before.unacknowledged.map(\.packetIdentifier) == [1, 3, 4])

        var after = DeliveryWindow(limit: 10)
        after.reserve(before.unacknowledged)
        after.enqueue(.delivery(Sample.delivery(9)))
        after.enqueue(.delivery(Sample.delivery(4)))
        after.enqueue(.delivery(Sample.delivery(4)))
        var sent: [DeliveryWindow.OutgoingMessage] = []
        while let outgoing = after.takeNext() { sent.append(outgoing) }
        #expect(sent.map(\.packetIdentifier) == [2, 4, 5])
        #expect(sent.map(\.isDuplicate) == [false, true, false])
        #expect(after.unacknowledged.count == 5)
    }

    @Test func `reservations of many connections leave identifiers for new messages`() {
        var window = DeliveryWindow(limit: 128)
        window.reserve(
            (1...UInt16.max).map {
                UnacknowledgedNotification(
                    notification: NotificationID(high: 0, low: UInt64($0)),
                    packetIdentifier: $0
                )
            }
        )
        #expect(window.unacknowledged.map(\.packetIdentifier).max() == 32_767)
        for number in 1...128 { window.enqueue(.delivery(Sample.delivery(UInt64(100_000 + number)))) }
        #expect(takeAll(&window).count == 128)
        #expect(window.unacknowledged.map(\.packetIdentifier).max() == 32_895)
    }

    @Test func `reserved identifiers do not narrow the window`() {
        let reserved = (1...10).map {
            UnacknowledgedNotification(
                notification: NotificationID(high: 0, low: UInt64($0)),
                packetIdentifier: UInt16($0 * 3)
            )
        }
        var window = DeliveryWindow(limit: 4)
        window.reserve(reserved + reserved)
        for number in 100...110 { window.enqueue(.delivery(Sample.delivery(UInt64(number)))) }
        var identifiers: Set<UInt16> = []
        while let outgoing = window.takeNext() { identifiers.insert(outgoing.packetIdentifier ?? 0) }
        #expect(identifiers.count == 4)
        #expect(identifiers.isDisjoint(with: reserved.map(\.packetIdentifier)))
    }

    @Test func `waiting messages of a removed app are dropped, and messages in flight stay`() {
        var window = DeliveryWindow(limit: 1)
        for number in 1...3 { window.enqueue(.delivery(Sample.delivery(UInt64(number), app: UInt32(number % 2)))) }
        #expect(takeAll(&window) == [1])
        window.drop([AppNumber(1)])
        #expect(window.queuedCount == 1)
        let done = window.acknowledge(1)
        #expect(done != nil)
        #expect(takeAll(&window) == [2])
    }

    private func takeAll(_ window: inout DeliveryWindow) -> [UInt64] {
        var taken: [UInt64] = []
        while let outgoing = window.takeNext() { taken.append(outgoing.message.notification) }
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
        collapseID: CollapseID? = nil,
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
            envelope: Envelope(notification, generation: 0),
            app: notification.slot.app,
            qualityOfService: qualityOfService
        )
    }
}

extension DeliveryWindow.Message {
    var notification: UInt64 {
        switch self {
        case .delivery(let delivery): delivery.envelope.notification.id.low
        case .token, .broadcast, .announcement: 0
        }
    }
}
