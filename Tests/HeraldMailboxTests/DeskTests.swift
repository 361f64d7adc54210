import HeraldModel
import Testing

@testable import HeraldMailbox

/// A desk with one registered app on one device, and a link that may be attached.
private struct Scene {
    let slot = Slot(device: DeviceNumber(7), app: AppNumber(3))
    let link = RecordingLink()
    let now = WallTime(seconds: 1_800_000_000)
    var desk: Desk
    private var nextID: UInt64 = 0

    init(connected: Bool = false, qualityOfService: UInt8 = 1, saving: Bool = false, limit: Int = 4) {
        desk = Desk(outstandingLimit: limit)
        desk.setRegistration(Registration(slot: slot, generation: 1, isLive: true, registered: now))
        guard connected else { return }
        desk.attach(slot.device, link: link, isSavingPower: saving, fence: 1)
        desk.open(slot, fence: 1, qualityOfService: qualityOfService)
        desk.haveRead([slot], found: [], fence: 1, now: now)
        desk.clearOrders()
    }

    /// A connection that has found nothing in the mailbox.
    mutating func connect(fence: UInt64) {
        desk.attach(slot.device, link: link, isSavingPower: false, fence: fence)
        desk.open(slot, fence: fence, qualityOfService: 1)
        desk.haveRead([slot], found: [], fence: fence, now: now)
        desk.clearOrders()
    }

    mutating func letter(priority: Priority = .immediate, stored: Bool = true) -> Letter {
        nextID += 1
        return Letter(
            Notification(
                id: NotificationID(high: 1, low: nextID),
                uniqueID: NotificationID(high: 2, low: nextID),
                slot: slot,
                received: now,
                storedUntil: stored ? now + .seconds(3600) : nil,
                priority: priority,
                pushType: .alert,
                collapseID: nil,
                payload: Array("{}".utf8)
            )
        )
    }

    /// The orders since the last look, in words.
    mutating func orders() -> [String] {
        defer { desk.clearOrders() }
        return desk.orders.map { order in
            switch order {
            case .deliver(_, let delivery): "deliver \(delivery.letter.notification.id.low)"
            case .dismiss(_, let reason): "dismiss \(reason)"
            case .store(let letter, let reason, _): "store \(letter.notification.id.low) \(reason)"
            case .remove(_, let sequence, let state): "remove \(sequence) \(state)"
            case .record(let state, let letter): "record \(letter.notification.id.low) \(state)"
            case .recordAndSettle(let state, let letter): "settle \(letter.notification.id.low) after \(state)"
            case .settle(let letter, let outcome): "settle \(letter.notification.id.low) \(outcome)"
            case .overtake(let letter, let sequence, let newer):
                "overtake \(letter.notification.id.low) at \(sequence) by \(newer.low)"
            case .overtakeUnstored(let letter, let newer):
                "overtake \(letter.notification.id.low) by \(newer.low)"
            case .read(let slots, _): "read \(slots.count)"
            }
        }
    }

    /// The deliveries ordered since the last look.
    mutating func deliveries() -> [Delivery] {
        defer { desk.clearOrders() }
        return desk.orders.compactMap { if case .deliver(_, let delivery) = $0 { delivery } else { nil } }
    }

    /// The tags of the puts ordered since the last look.
    mutating func puts() -> [(Letter, PutTag?)] {
        defer { desk.clearOrders() }
        return desk.orders.compactMap { if case .store(let letter, _, let tag) = $0 { (letter, tag) } else { nil } }
    }
}

private final class RecordingLink: DeviceLink {
    func deliver(_ delivery: Delivery) {}
    func dismiss(_ reason: DismissalReason) {}
}

@Suite struct DeskTests {
    @Test func `a notification for a device that is away is stored`() {
        var scene = Scene()
        #expect(scene.desk.post(scene.letter(), generation: 1) == .pending)
        #expect(scene.orders() == ["record 1 received", "store 1 deviceOffline"])
    }

    @Test func `a token of an earlier generation is dead, with the time`() {
        var scene = Scene()
        scene.desk.endRegistration(scene.slot, at: scene.now)
        #expect(scene.desk.post(scene.letter(), generation: 1) == .refused(.unregistered, since: scene.now))
        var back = Registration(slot: scene.slot, generation: 2, isLive: true, registered: scene.now)
        back.ended = scene.now
        scene.desk.setRegistration(back)
        #expect(scene.desk.post(scene.letter(), generation: 1) == .refused(.unregistered, since: scene.now))
        #expect(scene.desk.post(scene.letter(), generation: 2) == .pending)
    }

    @Test func `a token of no known registration is bad`() {
        var scene = Scene()
        scene.desk = Desk(outstandingLimit: 4)
        #expect(scene.desk.post(scene.letter(), generation: 1) == .refused(.badDeviceToken, since: nil))
        #expect(scene.orders().isEmpty)
    }

    @Test func `a connected device is sent to at once, and a quick acknowledgement spares the store`() throws {
        var scene = Scene(connected: true)
        #expect(scene.desk.post(scene.letter(), generation: 1) == .pending)
        let delivery = try #require(scene.deliveries().first)
        scene.desk.finished(scene.slot, fence: 1, delivery: delivery.number, result: .acknowledged)
        #expect(scene.orders() == ["record 1 delivered", "settle 1 accepted"])
        scene.desk.tick()
        scene.desk.tick()
        #expect(scene.orders().isEmpty)
    }

    @Test func `what is not acknowledged within the grace is stored`() {
        var scene = Scene(connected: true)
        _ = scene.desk.post(scene.letter(), generation: 1)
        _ = scene.orders()
        scene.desk.tick()
        #expect(scene.orders().isEmpty)
        scene.desk.tick()
        #expect(scene.orders() == ["store 1 unacknowledged"])
    }

    @Test func `an acknowledgement that comes while storing removes what was stored`() throws {
        var scene = Scene(connected: true)
        _ = scene.desk.post(scene.letter(), generation: 1)
        let delivery = try #require(scene.deliveries().first)
        scene.desk.tick()
        scene.desk.tick()
        let (letter, tag) = try #require(scene.puts().first)
        scene.desk.finished(scene.slot, fence: 1, delivery: delivery.number, result: .acknowledged)
        #expect(scene.orders().isEmpty)
        scene.desk.stored(StoredPut(letter: letter, sequence: 9, tag: tag))
        #expect(scene.orders() == ["settle 1 accepted", "remove 9 delivered"])
    }

    @Test func `a failed put of what the device acknowledged is a success`() throws {
        var scene = Scene(connected: true)
        _ = scene.desk.post(scene.letter(), generation: 1)
        let delivery = try #require(scene.deliveries().first)
        scene.desk.tick()
        scene.desk.tick()
        let (letter, _) = try #require(scene.puts().first)
        scene.desk.finished(scene.slot, fence: 1, delivery: delivery.number, result: .acknowledged)
        scene.desk.couldNotStore(letter)
        #expect(scene.orders() == ["record 1 delivered", "settle 1 accepted"])
    }

    @Test func `a failed put is refused and not sent again`() throws {
        var scene = Scene()
        let letter = scene.letter()
        _ = scene.desk.post(letter, generation: 1)
        _ = scene.orders()
        scene.desk.couldNotStore(letter)
        #expect(scene.orders() == ["settle 1 refused(ServiceUnavailable)"])
    }

    @Test func `what a lost connection had not acknowledged is stored in order`() {
        var scene = Scene(connected: true)
        _ = scene.desk.post(scene.letter(), generation: 1)
        _ = scene.desk.post(scene.letter(), generation: 1)
        _ = scene.orders()
        scene.desk.detach(scene.slot.device, fence: 1)
        #expect(scene.orders() == ["store 1 unacknowledged", "store 2 unacknowledged"])
    }

    @Test func `a newer connection takes over, and the older one's fence means nothing any more`() {
        var scene = Scene(connected: true)
        _ = scene.desk.post(scene.letter(), generation: 1)
        _ = scene.orders()
        scene.desk.attach(scene.slot.device, link: RecordingLink(), isSavingPower: false, fence: 2)
        #expect(scene.orders() == ["dismiss takenOver", "store 1 unacknowledged"])
        scene.desk.detach(scene.slot.device, fence: 1)
        #expect(scene.desk.isConnected(scene.slot.device))
    }

    @Test func `an older claim that arrives late is dismissed`() {
        var scene = Scene(connected: true)
        scene.desk.attach(scene.slot.device, link: RecordingLink(), isSavingPower: false, fence: 0)
        #expect(scene.orders() == ["dismiss takenOver"])
        #expect(scene.desk.isConnected(scene.slot.device))
    }

    @Test func `what waits is read when a connection opens, and delivered`() throws {
        var scene = Scene()
        let waiting = StoredNotification(notification: scene.letter().notification, sequence: 5)
        scene.desk.attach(scene.slot.device, link: scene.link, isSavingPower: false, fence: 1)
        scene.desk.open(scene.slot, fence: 1, qualityOfService: 1)
        #expect(scene.orders() == ["read 1"])
        scene.desk.haveRead([scene.slot], found: [waiting], fence: 1, now: scene.now)
        let delivery = try #require(scene.deliveries().first)
        scene.desk.finished(scene.slot, fence: 1, delivery: delivery.number, result: .acknowledged)
        #expect(scene.orders() == ["remove 5 deliveredFromStorage"])
    }

    @Test func `what was stored while reading, and is newer, is delivered in place of what was read`() {
        var scene = Scene()
        let older = StoredNotification(notification: scene.letter().notification, sequence: 5)
        scene.desk.attach(scene.slot.device, link: scene.link, isSavingPower: false, fence: 1)
        scene.desk.open(scene.slot, fence: 1, qualityOfService: 1)
        let newer = scene.letter()
        _ = scene.desk.post(newer, generation: 1)
        _ = scene.orders()
        scene.desk.stored(StoredPut(letter: newer, sequence: 6, tag: nil))
        scene.desk.haveRead([scene.slot], found: [older], fence: 1, now: scene.now)
        #expect(scene.orders() == ["settle 2 accepted", "deliver 2"])
    }

    @Test func `nothing is sent twice on one connection`() {
        var scene = Scene()
        let letter = scene.letter()
        scene.desk.attach(scene.slot.device, link: scene.link, isSavingPower: false, fence: 1)
        scene.desk.open(scene.slot, fence: 1, qualityOfService: 1)
        let read = StoredNotification(notification: letter.notification, sequence: 5)
        scene.desk.haveRead([scene.slot], found: [read], fence: 1, now: scene.now)
        _ = scene.orders()
        // The store's report of the same put, late.
        scene.desk.stored(
            StoredPut(letter: letter, sequence: 5, tag: PutTag(fence: 0, delivery: .init(index: 0, stamp: 0)))
        )
        #expect(scene.orders() == ["settle 1 accepted"])
    }

    @Test func `what expired is not delivered when it is read`() {
        var scene = Scene()
        let waiting = StoredNotification(notification: scene.letter().notification, sequence: 5)
        scene.desk.attach(scene.slot.device, link: scene.link, isSavingPower: false, fence: 1)
        scene.desk.open(scene.slot, fence: 1, qualityOfService: 1)
        _ = scene.orders()
        scene.desk.haveRead([scene.slot], found: [waiting], fence: 1, now: scene.now + .seconds(3600))
        #expect(scene.orders() == ["remove 5 discardedExpiredFromStorage"])
    }

    @Test func `one attempt is made and nothing stored where storage is not wanted`() {
        var away = Scene()
        #expect(away.desk.post(away.letter(stored: false), generation: 1) == .accepted)
        #expect(away.orders() == ["record 1 received", "record 1 discardedDeviceOffline"])
        var here = Scene(connected: true)
        #expect(here.desk.post(here.letter(stored: false), generation: 1) == .accepted)
        #expect(here.orders() == ["record 1 received", "deliver 1"])
        here.desk.detach(here.slot.device, fence: 1)
        #expect(here.orders() == ["record 1 discardedDeviceOffline"])
    }

    @Test func `past the limit what arrives is stored, and read on when room is back`() throws {
        var scene = Scene(connected: true, limit: 2)
        for _ in 1...3 { _ = scene.desk.post(scene.letter(), generation: 1) }
        let deliver = scene.desk.orders.compactMap { if case .deliver(_, let delivery) = $0 { delivery } else { nil } }
        #expect(deliver.count == 2)
        // The two on their way are stored before the third, so that the third stays the newest.
        let puts = scene.puts()
        #expect(puts.map(\.0.notification.id.low) == [1, 2, 3])
        for (index, put) in puts.enumerated() {
            scene.desk.stored(StoredPut(letter: put.0, sequence: UInt64(index + 1), tag: put.1))
        }
        #expect(scene.orders() == ["settle 1 accepted", "settle 2 accepted", "settle 3 accepted"])
        scene.desk.finished(scene.slot, fence: 1, delivery: deliver[0].number, result: .acknowledged)
        #expect(scene.orders() == ["remove 1 delivered", "read 1"])
    }

    @Test func `of what was stored for want of room, what was replaced in the same commit is not sent`() throws {
        var scene = Scene(connected: true, limit: 1)
        let sent = scene.letter()
        _ = scene.desk.post(sent, generation: 1)
        let delivery = try #require(scene.deliveries().first)
        scene.desk.tick()
        scene.desk.tick()
        let first = try #require(scene.puts().first)
        scene.desk.stored(StoredPut(letter: sent, sequence: 1, tag: first.1))
        for _ in 2...3 { _ = scene.desk.post(scene.letter(), generation: 1) }
        let puts = scene.puts()
        #expect(puts.map(\.0.notification.id.low) == [2, 3])
        // There is room again, and nothing is found to wait, before the store reports the commit of both.
        scene.desk.finished(scene.slot, fence: 1, delivery: delivery.number, result: .acknowledged)
        #expect(scene.orders() == ["remove 1 delivered", "read 1"])
        scene.desk.haveRead([scene.slot], found: [], fence: 1, now: scene.now)
        scene.desk.stored(StoredPut(letter: puts[0].0, sequence: 2, tag: puts[0].1, isReplaced: true))
        scene.desk.stored(StoredPut(letter: puts[1].0, sequence: 3, tag: puts[1].1))
        #expect(scene.orders() == ["settle 2 accepted", "settle 3 accepted", "deliver 3"])
    }

    @Test func `what was sent directly and replaced while it was stored keeps its acknowledgement's line`() throws {
        var scene = Scene(connected: true)
        let letter = scene.letter()
        _ = scene.desk.post(letter, generation: 1)
        let delivery = try #require(scene.deliveries().first)
        scene.desk.tick()
        scene.desk.tick()
        let put = try #require(scene.puts().first)
        scene.desk.stored(StoredPut(letter: letter, sequence: 1, tag: put.1, isReplaced: true))
        #expect(scene.orders() == ["settle 1 accepted"])
        scene.desk.finished(scene.slot, fence: 1, delivery: delivery.number, result: .acknowledged)
        #expect(scene.orders() == ["remove 1 delivered"])
    }

    @Test func `quality of service 0 is stored first and gone once written`() throws {
        var scene = Scene(connected: true, qualityOfService: 0)
        let letter = scene.letter()
        _ = scene.desk.post(letter, generation: 1)
        #expect(scene.orders() == ["record 1 received", "store 1 backlog"])
        scene.desk.stored(StoredPut(letter: letter, sequence: 4, tag: nil))
        let delivery = try #require(scene.deliveries().first)
        scene.desk.finished(scene.slot, fence: 1, delivery: delivery.number, result: .written)
        #expect(scene.orders() == ["remove 4 deliveredUnacknowledgedFromStorage"])
    }

    @Test func `priorities 5 and 1 wait while the device saves power, 10 does not`() throws {
        var scene = Scene(connected: true, saving: true)
        let patient = scene.letter(priority: .conserving)
        _ = scene.desk.post(patient, generation: 1)
        #expect(scene.orders() == ["record 1 received", "store 1 power"])
        scene.desk.stored(StoredPut(letter: patient, sequence: 4, tag: nil))
        #expect(scene.orders() == ["settle 1 accepted"])
        scene.desk.setSavingPower(false, device: scene.slot.device, fence: 1)
        #expect(scene.orders() == ["read 1"])
        var urgent = Scene(connected: true, saving: true)
        _ = urgent.desk.post(urgent.letter(priority: .immediate), generation: 1)
        #expect(urgent.orders() == ["record 1 received", "deliver 1"])
    }

    @Test func `notifications that the user switched off are accepted, recorded and not delivered`() {
        var scene = Scene(connected: true)
        scene.desk.setRegistration(
            Registration(slot: scene.slot, generation: 1, isLive: true, registered: scene.now, isEnabled: false)
        )
        #expect(scene.desk.post(scene.letter(), generation: 1) == .pending)
        #expect(scene.orders() == ["record 1 received", "settle 1 after discardedDisabled"])
    }

    @Test func `a removed app gets nothing more, and what was on its way is settled`() {
        var scene = Scene(connected: true)
        _ = scene.desk.post(scene.letter(), generation: 1)
        _ = scene.orders()
        scene.desk.endRegistration(scene.slot, at: scene.now)
        #expect(scene.orders() == ["settle 1 after discardedUnregistered"])
    }

    @Test func `one that was not to be stored and is on its way to a removed app has an end on record`() {
        var scene = Scene(connected: true)
        _ = scene.desk.post(scene.letter(stored: false), generation: 1)
        _ = scene.orders()
        scene.desk.endRegistration(scene.slot, at: scene.now)
        #expect(scene.orders() == ["record 1 discardedUnregistered"])
    }

    @Test func `what is stored while the app is being removed does not wait for the next registration`() throws {
        var scene = Scene()
        _ = scene.desk.post(scene.letter(), generation: 1)
        let (letter, tag) = try #require(scene.puts().first)
        scene.desk.endRegistration(scene.slot, at: scene.now)
        scene.desk.stored(StoredPut(letter: letter, sequence: 9, tag: tag))
        #expect(scene.orders() == ["settle 1 accepted", "remove 9 discardedUnregisteredFromStorage"])
        scene.desk.stored(StoredPut(letter: letter, sequence: 9, tag: tag, isReplaced: true))
        #expect(scene.orders() == ["settle 1 accepted"])
    }

    @Test func `an older one that is stored gives way to a newer one that is acknowledged before it`() throws {
        var scene = Scene(connected: true)
        _ = scene.desk.post(scene.letter(), generation: 1)
        _ = scene.orders()
        scene.desk.tick()
        scene.desk.tick()
        let (letter, tag) = try #require(scene.puts().first)
        scene.desk.stored(StoredPut(letter: letter, sequence: 5, tag: tag))
        _ = scene.orders()
        _ = scene.desk.post(scene.letter(), generation: 1)
        let newer = try #require(scene.deliveries().first)
        scene.desk.finished(scene.slot, fence: 1, delivery: newer.number, result: .acknowledged)
        #expect(scene.orders() == ["record 2 delivered", "settle 2 accepted", "overtake 1 at 5 by 2"])
        scene.desk.detach(scene.slot.device, fence: 1)
        #expect(scene.orders().isEmpty)
    }

    @Test func `an older one that is not stored yet is settled as replaced, and still may be acknowledged`() throws {
        var scene = Scene(connected: true)
        _ = scene.desk.post(scene.letter(), generation: 1)
        _ = scene.desk.post(scene.letter(), generation: 1)
        let deliveries = scene.deliveries()
        scene.desk.finished(scene.slot, fence: 1, delivery: deliveries[1].number, result: .acknowledged)
        #expect(scene.orders() == ["record 2 delivered", "settle 2 accepted", "overtake 1 by 2"])
        scene.desk.tick()
        scene.desk.tick()
        #expect(scene.orders().isEmpty)
        scene.desk.finished(scene.slot, fence: 1, delivery: deliveries[0].number, result: .acknowledged)
        #expect(scene.orders() == ["record 1 delivered"])
    }

    @Test func `what ended on its way into the store does not come back after the connection is gone`() throws {
        var scene = Scene(connected: true)
        _ = scene.desk.post(scene.letter(), generation: 1)
        let delivery = try #require(scene.deliveries().first)
        scene.desk.tick()
        scene.desk.tick()
        let (letter, tag) = try #require(scene.puts().first)
        scene.desk.finished(scene.slot, fence: 1, delivery: delivery.number, result: .acknowledged)
        scene.desk.detach(scene.slot.device, fence: 1)
        scene.desk.stored(StoredPut(letter: letter, sequence: 5, tag: tag))
        #expect(scene.orders() == ["settle 1 accepted", "remove 5 delivered"])
        #expect(scene.desk.departed.isEmpty)
    }

    @Test func `an acknowledgement for a delivery that ended means nothing`() throws {
        var scene = Scene(connected: true)
        _ = scene.desk.post(scene.letter(), generation: 1)
        let delivery = try #require(scene.deliveries().first)
        scene.desk.finished(scene.slot, fence: 1, delivery: delivery.number, result: .acknowledged)
        _ = scene.orders()
        _ = scene.desk.post(scene.letter(), generation: 1)
        _ = scene.orders()
        scene.desk.finished(scene.slot, fence: 1, delivery: delivery.number, result: .acknowledged)
        #expect(scene.orders().isEmpty)
    }

    // What was on its way into the store before the connection.

    @Test func `what arrives waits for a put from before the connection, and comes after it`() throws {
        var scene = Scene()
        _ = scene.desk.post(scene.letter(), generation: 1)
        let (old, oldTag) = try #require(scene.puts().first)
        scene.connect(fence: 1)
        _ = scene.desk.post(scene.letter(), generation: 1)
        let (new, newTag) = try #require(scene.puts().first)
        scene.desk.stored(StoredPut(letter: old, sequence: 5, tag: oldTag))
        #expect(scene.orders() == ["settle 1 accepted", "deliver 1"])
        scene.desk.stored(StoredPut(letter: new, sequence: 6, tag: newTag))
        #expect(scene.orders() == ["settle 2 accepted", "deliver 2"])
        _ = scene.desk.post(scene.letter(), generation: 1)
        #expect(scene.orders() == ["record 3 received", "deliver 3"])
    }

    @Test func `a put of a connection that is gone is from before the next, if it was sent or not`() throws {
        var scene = Scene(connected: true, limit: 1)
        _ = scene.desk.post(scene.letter(), generation: 1)
        _ = scene.desk.post(scene.letter(), generation: 1)
        let puts = scene.puts()
        #expect(puts.map(\.0.notification.id.low) == [1, 2])
        scene.connect(fence: 2)
        #expect(scene.desk.lines[scene.slot.device]?.gate(scene.slot.app)?.pendingPuts == 2)
        for (sequence, put) in puts.enumerated() {
            scene.desk.stored(StoredPut(letter: put.0, sequence: UInt64(sequence) + 5, tag: put.1))
        }
        #expect(scene.desk.lines[scene.slot.device]?.gate(scene.slot.app)?.pendingPuts == 0)
    }

    @Test func `a put from before an app was unsubscribed is from before it is subscribed to again`() throws {
        var scene = Scene(connected: true, limit: 1)
        _ = scene.desk.post(scene.letter(), generation: 1)
        _ = scene.desk.post(scene.letter(), generation: 1)
        _ = scene.orders()
        scene.desk.close(scene.slot, fence: 1)
        #expect(scene.desk.strayPuts == [scene.slot: 1])
        scene.desk.open(scene.slot, fence: 1, qualityOfService: 1)
        #expect(scene.desk.strayPuts.isEmpty)
        #expect(scene.desk.lines[scene.slot.device]?.gate(scene.slot.app)?.pendingPuts == 1)
    }

    @Test func `a put outlives the registration that it was for`() throws {
        var scene = Scene()
        _ = scene.desk.post(scene.letter(), generation: 1)
        let put = try #require(scene.puts().first)
        let registration = try #require(scene.desk.registration(scene.slot))
        scene.desk.forgetRegistration(scene.slot)
        #expect(scene.desk.post(scene.letter(), generation: 1) == .refused(.badDeviceToken, since: nil))
        #expect(scene.desk.strayPuts == [scene.slot: 1])
        scene.desk.setRegistration(registration)
        scene.connect(fence: 1)
        #expect(scene.desk.lines[scene.slot.device]?.gate(scene.slot.app)?.pendingPuts == 1)
        scene.desk.stored(StoredPut(letter: put.0, sequence: 5, tag: put.1))
        scene.desk.forgetRegistration(scene.slot)
        #expect(scene.desk.holdings.isEmpty)
    }

    @Test func `a put that is reported, or fails, is forgotten`() throws {
        var scene = Scene()
        _ = scene.desk.post(scene.letter(), generation: 1)
        _ = scene.desk.post(scene.letter(), generation: 1)
        let puts = scene.puts()
        #expect(scene.desk.strayPuts == [scene.slot: 2])
        scene.desk.stored(StoredPut(letter: puts[0].0, sequence: 5, tag: nil))
        scene.desk.couldNotStore(puts[1].0)
        #expect(scene.desk.strayPuts.isEmpty)
        _ = scene.orders()
        scene.connect(fence: 1)
        _ = scene.desk.post(scene.letter(), generation: 1)
        #expect(scene.orders() == ["record 3 received", "deliver 3"])
    }
}
