import HeraldModel
import Testing

@testable import HeraldMailbox

/// A shard with one registered app on one device, and a link that may be attached.
private struct Scene {
    let slot = Slot(device: DeviceNumber(7), app: AppNumber(3))
    let link = RecordingLink()
    let now = WallTime(seconds: 1_800_000_000)
    var shard: DeliveryShard
    private var nextID: UInt64 = 0

    init(connected: Bool = false, qualityOfService: UInt8 = 1, saving: Bool = false, limit: Int = 4) {
        shard = DeliveryShard(inFlightLimit: limit)
        shard.slots.setRegistration(Registration(slot: slot, generation: 1, isLive: true, registered: now))
        guard connected else { return }
        shard.attach(slot.device, link: link, isSavingPower: saving, fence: 1)
        shard.open(slot, fence: 1, qualityOfService: qualityOfService)
        shard.haveRead([slot], found: [], number: shard.lastRead, now: now)
        shard.clearEffects()
    }

    /// A connection that has found nothing in the mailbox.
    mutating func connect(fence: UInt64) {
        shard.attach(slot.device, link: link, isSavingPower: false, fence: fence)
        shard.open(slot, fence: fence, qualityOfService: 1)
        shard.haveRead([slot], found: [], number: shard.lastRead, now: now)
        shard.clearEffects()
    }

    mutating func envelope(
        priority: Priority = .immediate,
        stored: Bool = true,
        generation: UInt32 = 1
    ) -> Envelope {
        nextID += 1
        return Envelope(
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
            ),
            generation: generation
        )
    }

    /// The effects since the last look, in words.
    mutating func effects() -> [String] {
        defer { shard.clearEffects() }
        return shard.effects.flatMap { effect in
            switch effect {
            case .deliver(_, let delivery): ["deliver \(delivery.envelope.notification.id.low)"]
            case .dismiss(_, let reason): ["dismiss \(reason)"]
            case .read(let slots, _): ["read \(slots.count)"]
            case .envelope(let envelope, let effect): words(effect, envelope.notification.id.low)
            }
        }
    }

    private func words(_ effect: EnvelopeEffect, _ id: UInt64) -> [String] {
        switch effect {
        case .store(let reason, _): ["store \(id) \(reason)"]
        case .remove(let sequence, _, let newer?): ["replace \(id) at \(sequence) by \(newer.low)"]
        case .remove(let sequence, let state, nil): ["remove \(sequence) \(state)"]
        case .record(let state): ["record \(id) \(state)"]
        case .acceptAndRecord(let state): ["record \(id) \(state)", "settle \(id) accepted"]
        case .recordThenAccept(_, let newer?): ["replace \(id) by \(newer.low)"]
        case .recordThenAccept(let state, nil): ["settle \(id) after \(state)"]
        case .settle(let outcome): ["settle \(id) \(outcome)"]
        case .passOn: ["pass on \(id)"]
        }
    }

    /// The deliveries since the last look.
    mutating func deliveries() -> [Delivery] {
        defer { shard.clearEffects() }
        return shard.effects.compactMap { if case .deliver(_, let delivery) = $0 { delivery } else { nil } }
    }

    /// The writes since the last look, with their tags.
    mutating func puts() -> [(Envelope, PutTag?)] {
        defer { shard.clearEffects() }
        return shard.effects.compactMap {
            if case .envelope(let envelope, .store(_, let tag)) = $0 { (envelope, tag) } else { nil }
        }
    }
}

private final class RecordingLink: DeviceLink {
    func deliver(_ delivery: Delivery) {}
    func dismiss(_ reason: DismissalReason) {}
}

@Suite struct DeliveryShardTests {
    @Test func `a notification for a device that is away is stored`() {
        var scene = Scene()
        #expect(scene.shard.post(scene.envelope()) == .pending)
        #expect(scene.effects() == ["record 1 received", "store 1 deviceOffline"])
    }

    @Test func `a connected device without a subscription, or without its token, is not said to be away`() {
        var scene = Scene(connected: true)
        _ = scene.effects()
        scene.shard.close(scene.slot, fence: 1, awaitsToken: true)
        #expect(scene.shard.post(scene.envelope()) == .pending)
        #expect(scene.effects() == ["record 1 received", "store 1 tokenMissing"])
        #expect(scene.shard.post(scene.envelope(stored: false)) == .accepted)
        #expect(scene.effects() == ["record 2 received", "record 2 discardedTokenMissing"])
        scene.shard.close(scene.slot, fence: 1)
        #expect(scene.shard.post(scene.envelope()) == .pending)
        #expect(scene.effects() == ["record 3 received", "store 3 notSubscribed"])
        #expect(scene.shard.post(scene.envelope(stored: false)) == .accepted)
        #expect(scene.effects() == ["record 4 received", "record 4 discardedNotSubscribed"])
        // Opened again, it waits for nothing any more.
        scene.shard.close(scene.slot, fence: 1, awaitsToken: true)
        scene.shard.open([AppSubscription(scene.slot.app, qualityOfService: 1)], on: scene.slot.device, fence: 1)
        scene.shard.close(scene.slot, fence: 1)
        _ = scene.effects()
        #expect(scene.shard.post(scene.envelope()) == .pending)
        #expect(scene.effects() == ["record 5 received", "store 5 notSubscribed"])
    }

    @Test func `a notification at which the client ends its connections leaves the store`() {
        var scene = Scene(connected: true)
        let envelope = scene.envelope()
        #expect(scene.shard.post(envelope) == .pending)
        guard let number = scene.shard.connections[scene.slot.device]?.inFlight.delivery(of: envelope)?.number else {
            Issue.record("nothing is in flight")
            return
        }
        scene.shard.tick()
        scene.shard.tick()
        scene.shard.stored(StoredPut(envelope: envelope, sequence: 9, tag: PutTag(fence: 1, delivery: number)))
        _ = scene.effects()
        scene.shard.finished(scene.slot, fence: 1, delivery: number, result: .endsConnection)
        scene.shard.detach(scene.slot.device, fence: 1)
        #expect(scene.effects() == ["remove 9 refusedByEndedConnections"])
    }

    @Test func `a token of an earlier generation is unregistered, with the time`() {
        var scene = Scene()
        scene.shard.endRegistration(scene.slot, at: scene.now)
        #expect(scene.shard.post(scene.envelope()) == .refused(.unregistered, since: scene.now))
        var back = Registration(slot: scene.slot, generation: 2, isLive: true, registered: scene.now)
        back.ended = scene.now
        scene.shard.slots.setRegistration(back)
        #expect(scene.shard.post(scene.envelope()) == .refused(.unregistered, since: scene.now))
        #expect(scene.shard.post(scene.envelope(generation: 2)) == .pending)
    }

    @Test func `a token of no known registration is bad`() {
        var scene = Scene()
        scene.shard = DeliveryShard(inFlightLimit: 4)
        #expect(scene.shard.post(scene.envelope()) == .refused(.badDeviceToken, since: nil))
        #expect(scene.effects().isEmpty)
    }

    @Test func `a quick acknowledgement keeps a notification out of the store`() throws {
        var scene = Scene(connected: true)
        #expect(scene.shard.post(scene.envelope()) == .pending)
        let delivery = try #require(scene.deliveries().first)
        scene.shard.finished(scene.slot, fence: 1, delivery: delivery.number, result: .acknowledged)
        #expect(scene.effects() == ["record 1 delivered", "settle 1 accepted"])
        scene.shard.tick()
        scene.shard.tick()
        #expect(scene.effects().isEmpty)
    }

    @Test func `a delivery that is not acknowledged within the grace is stored`() {
        var scene = Scene(connected: true)
        _ = scene.shard.post(scene.envelope())
        _ = scene.effects()
        scene.shard.tick()
        #expect(scene.effects().isEmpty)
        scene.shard.tick()
        #expect(scene.effects() == ["store 1 unacknowledged"])
    }

    @Test func `an acknowledgement during the write removes the notification from the store`() throws {
        var scene = Scene(connected: true)
        _ = scene.shard.post(scene.envelope())
        let delivery = try #require(scene.deliveries().first)
        scene.shard.tick()
        scene.shard.tick()
        let (envelope, tag) = try #require(scene.puts().first)
        scene.shard.finished(scene.slot, fence: 1, delivery: delivery.number, result: .acknowledged)
        #expect(scene.effects().isEmpty)
        scene.shard.stored(StoredPut(envelope: envelope, sequence: 9, tag: tag))
        #expect(scene.effects() == ["settle 1 accepted", "remove 9 delivered"])
    }

    @Test func `a failed write of an acknowledged notification is a success`() throws {
        var scene = Scene(connected: true)
        _ = scene.shard.post(scene.envelope())
        let delivery = try #require(scene.deliveries().first)
        scene.shard.tick()
        scene.shard.tick()
        let (envelope, _) = try #require(scene.puts().first)
        scene.shard.finished(scene.slot, fence: 1, delivery: delivery.number, result: .acknowledged)
        scene.shard.couldNotStore(envelope, .refused(.serviceUnavailable))
        #expect(scene.effects() == ["record 1 delivered", "settle 1 accepted"])
    }

    @Test func `a failed write is refused and not sent again`() throws {
        var scene = Scene()
        let envelope = scene.envelope()
        _ = scene.shard.post(envelope)
        _ = scene.effects()
        scene.shard.couldNotStore(envelope, .refused(.serviceUnavailable))
        #expect(scene.effects() == ["settle 1 refused(ServiceUnavailable, since: nil)"])
    }

    @Test func `unacknowledged deliveries of a lost connection are stored in order`() {
        var scene = Scene(connected: true)
        _ = scene.shard.post(scene.envelope())
        _ = scene.shard.post(scene.envelope())
        _ = scene.effects()
        scene.shard.detach(scene.slot.device, fence: 1)
        #expect(scene.effects() == ["store 1 unacknowledged", "store 2 unacknowledged"])
    }

    @Test func `a newer connection takes over, and the older fence is ignored`() {
        var scene = Scene(connected: true)
        _ = scene.shard.post(scene.envelope())
        _ = scene.effects()
        scene.shard.attach(scene.slot.device, link: RecordingLink(), isSavingPower: false, fence: 2)
        #expect(scene.effects() == ["dismiss takenOver", "store 1 unacknowledged"])
        scene.shard.detach(scene.slot.device, fence: 1)
        #expect(scene.shard.connections[scene.slot.device] != nil)
    }

    @Test func `an older connection that comes late is dismissed`() {
        var scene = Scene(connected: true)
        scene.shard.attach(scene.slot.device, link: RecordingLink(), isSavingPower: false, fence: 0)
        #expect(scene.effects() == ["dismiss takenOver"])
        #expect(scene.shard.connections[scene.slot.device] != nil)
    }

    @Test func `a stored notification is delivered when a connection opens`() throws {
        var scene = Scene()
        let waiting = StoredNotification(notification: scene.envelope().notification, generation: 1, sequence: 5)
        scene.shard.attach(scene.slot.device, link: scene.link, isSavingPower: false, fence: 1)
        scene.shard.open(scene.slot, fence: 1, qualityOfService: 1)
        #expect(scene.effects() == ["read 1"])
        scene.shard.haveRead([scene.slot], found: [waiting], number: scene.shard.lastRead, now: scene.now)
        let delivery = try #require(scene.deliveries().first)
        scene.shard.finished(scene.slot, fence: 1, delivery: delivery.number, result: .acknowledged)
        #expect(scene.effects() == ["remove 5 deliveredFromStorage"])
    }

    @Test func `a newer notification stored during the read is delivered instead`() {
        var scene = Scene()
        let older = StoredNotification(notification: scene.envelope().notification, generation: 1, sequence: 5)
        scene.shard.attach(scene.slot.device, link: scene.link, isSavingPower: false, fence: 1)
        scene.shard.open(scene.slot, fence: 1, qualityOfService: 1)
        let newer = scene.envelope()
        _ = scene.shard.post(newer)
        _ = scene.effects()
        scene.shard.stored(StoredPut(envelope: newer, sequence: 6, tag: nil))
        scene.shard.haveRead([scene.slot], found: [older], number: scene.shard.lastRead, now: scene.now)
        #expect(scene.effects() == ["settle 2 accepted", "deliver 2"])
    }

    @Test func `nothing is sent twice on one connection`() {
        var scene = Scene()
        let envelope = scene.envelope()
        scene.shard.attach(scene.slot.device, link: scene.link, isSavingPower: false, fence: 1)
        scene.shard.open(scene.slot, fence: 1, qualityOfService: 1)
        let read = StoredNotification(notification: envelope.notification, generation: 1, sequence: 5)
        scene.shard.haveRead([scene.slot], found: [read], number: scene.shard.lastRead, now: scene.now)
        _ = scene.effects()
        // The store's report of the same put, late.
        scene.shard.stored(
            StoredPut(envelope: envelope, sequence: 5, tag: PutTag(fence: 0, delivery: .init(index: 0, stamp: 0)))
        )
        #expect(scene.effects() == ["settle 1 accepted"])
    }

    @Test func `an expired notification is not delivered`() {
        var scene = Scene()
        let waiting = StoredNotification(notification: scene.envelope().notification, generation: 1, sequence: 5)
        scene.shard.attach(scene.slot.device, link: scene.link, isSavingPower: false, fence: 1)
        scene.shard.open(scene.slot, fence: 1, qualityOfService: 1)
        _ = scene.effects()
        scene.shard.haveRead(
            [scene.slot],
            found: [waiting],
            number: scene.shard.lastRead,
            now: scene.now + .seconds(3600)
        )
        #expect(scene.effects() == ["remove 5 discardedExpiredFromStorage"])
    }

    @Test func `a notification that expired by a jump of the clock is withheld until its time is certain`() {
        var scene = Scene()
        let waiting = StoredNotification(notification: scene.envelope().notification, generation: 1, sequence: 5)
        scene.shard.attach(scene.slot.device, link: scene.link, isSavingPower: false, fence: 1)
        scene.shard.open(scene.slot, fence: 1, qualityOfService: 1)
        _ = scene.effects()
        let later = scene.now + .seconds(86_400)
        func read(at now: WallTime, certain: WallTime) {
            scene.shard.holdRules.certainTime = certain
            scene.shard.haveRead([scene.slot], found: [waiting], number: scene.shard.lastRead, now: now)
        }
        read(at: later, certain: scene.now)
        #expect(scene.effects() == [])
        // Room on the connection does not release it.
        scene.shard.setSavingPower(false, device: scene.slot.device, fence: 1)
        #expect(scene.effects() == [])
        scene.shard.releaseWithheld()
        #expect(scene.effects() == ["read 1"])
        read(at: later, certain: later)
        #expect(scene.effects() == ["remove 5 discardedExpiredFromStorage"])
    }

    @Test func `a newer notification takes the place of a withheld one`() {
        var scene = Scene()
        let waiting = StoredNotification(notification: scene.envelope().notification, generation: 1, sequence: 5)
        scene.shard.attach(scene.slot.device, link: scene.link, isSavingPower: false, fence: 1)
        scene.shard.open(scene.slot, fence: 1, qualityOfService: 1)
        let later = scene.now + .seconds(86_400)
        scene.shard.holdRules.certainTime = scene.now
        scene.shard.haveRead([scene.slot], found: [waiting], number: scene.shard.lastRead, now: later)
        _ = scene.effects()
        let newer = scene.envelope()
        #expect(scene.shard.post(newer) == .pending)
        #expect(scene.effects().contains { $0.hasPrefix("store") })
        scene.shard.stored(StoredPut(envelope: newer, sequence: 6, tag: PutTag(fence: 1, delivery: nil)))
        #expect(scene.effects().contains { $0.hasPrefix("deliver") })
    }

    @Test func `a notification without storage gets one attempt`() {
        var away = Scene()
        #expect(away.shard.post(away.envelope(stored: false)) == .accepted)
        #expect(away.effects() == ["record 1 received", "record 1 discardedDeviceOffline"])
        var here = Scene(connected: true)
        #expect(here.shard.post(here.envelope(stored: false)) == .accepted)
        #expect(here.effects() == ["record 1 received", "deliver 1"])
        here.shard.detach(here.slot.device, fence: 1)
        #expect(here.effects() == ["record 1 discardedDeviceOffline"])
    }

    @Test func `past the limit notifications are stored, and read when there is room`() throws {
        var scene = Scene(connected: true, limit: 2)
        for _ in 1...3 { _ = scene.shard.post(scene.envelope()) }
        let deliver = scene.shard.effects.compactMap {
            if case .deliver(_, let delivery) = $0 { delivery } else { nil }
        }
        #expect(deliver.count == 2)
        // The two on their way are stored before the third, so that the third stays the newest.
        let puts = scene.puts()
        #expect(puts.map(\.0.notification.id.low) == [1, 2, 3])
        for (index, put) in puts.enumerated() {
            scene.shard.stored(StoredPut(envelope: put.0, sequence: UInt64(index + 1), tag: put.1))
        }
        #expect(scene.effects() == ["settle 1 accepted", "settle 2 accepted", "settle 3 accepted"])
        scene.shard.finished(scene.slot, fence: 1, delivery: deliver[0].number, result: .acknowledged)
        #expect(scene.effects() == ["remove 1 delivered", "read 1"])
    }

    @Test func `a notification that the same commit replaced is not sent`() throws {
        var scene = Scene(connected: true, limit: 1)
        let sent = scene.envelope()
        _ = scene.shard.post(sent)
        let delivery = try #require(scene.deliveries().first)
        scene.shard.tick()
        scene.shard.tick()
        let first = try #require(scene.puts().first)
        scene.shard.stored(StoredPut(envelope: sent, sequence: 1, tag: first.1))
        for _ in 2...3 { _ = scene.shard.post(scene.envelope()) }
        let puts = scene.puts()
        #expect(puts.map(\.0.notification.id.low) == [2, 3])
        // There is room again, and nothing is found to wait, before the store reports the commit of both.
        scene.shard.finished(scene.slot, fence: 1, delivery: delivery.number, result: .acknowledged)
        #expect(scene.effects() == ["remove 1 delivered", "read 1"])
        scene.shard.haveRead([scene.slot], found: [], number: scene.shard.lastRead, now: scene.now)
        scene.shard.stored(StoredPut(envelope: puts[0].0, sequence: 2, tag: puts[0].1, isReplaced: true))
        scene.shard.stored(StoredPut(envelope: puts[1].0, sequence: 3, tag: puts[1].1))
        #expect(scene.effects() == ["settle 2 accepted", "settle 3 accepted", "deliver 3"])
    }

    @Test func `a sent notification that the store replaced still records its acknowledgement`() throws {
        var scene = Scene(connected: true)
        let envelope = scene.envelope()
        _ = scene.shard.post(envelope)
        let delivery = try #require(scene.deliveries().first)
        scene.shard.tick()
        scene.shard.tick()
        let put = try #require(scene.puts().first)
        scene.shard.stored(StoredPut(envelope: envelope, sequence: 1, tag: put.1, isReplaced: true))
        #expect(scene.effects() == ["settle 1 accepted"])
        scene.shard.finished(scene.slot, fence: 1, delivery: delivery.number, result: .acknowledged)
        #expect(scene.effects() == ["remove 1 delivered"])
    }

    @Test func `quality of service 0 is stored first and gone once written`() throws {
        var scene = Scene(connected: true, qualityOfService: 0)
        let envelope = scene.envelope()
        _ = scene.shard.post(envelope)
        #expect(scene.effects() == ["record 1 received", "store 1 backlog"])
        scene.shard.stored(StoredPut(envelope: envelope, sequence: 4, tag: nil))
        let delivery = try #require(scene.deliveries().first)
        scene.shard.finished(scene.slot, fence: 1, delivery: delivery.number, result: .written)
        #expect(scene.effects() == ["remove 4 deliveredUnacknowledgedFromStorage"])
    }

    @Test func `priorities 5 and 1 wait while the device saves power, 10 does not`() throws {
        var scene = Scene(connected: true, saving: true)
        let patient = scene.envelope(priority: .conserving)
        _ = scene.shard.post(patient)
        #expect(scene.effects() == ["record 1 received", "store 1 power"])
        scene.shard.stored(StoredPut(envelope: patient, sequence: 4, tag: nil))
        #expect(scene.effects() == ["settle 1 accepted"])
        scene.shard.setSavingPower(false, device: scene.slot.device, fence: 1)
        #expect(scene.effects() == ["read 1"])
        var urgent = Scene(connected: true, saving: true)
        _ = urgent.shard.post(urgent.envelope(priority: .immediate))
        #expect(urgent.effects() == ["record 1 received", "deliver 1"])
    }

    @Test func `notifications that the user switched off are accepted, recorded and not delivered`() {
        var scene = Scene(connected: true)
        scene.shard.slots.setRegistration(
            Registration(slot: scene.slot, generation: 1, isLive: true, registered: scene.now, isEnabled: false)
        )
        #expect(scene.shard.post(scene.envelope()) == .pending)
        #expect(scene.effects() == ["record 1 received", "settle 1 after discardedDisabled"])
    }

    @Test func `removing an app settles its deliveries in flight`() {
        var scene = Scene(connected: true)
        _ = scene.shard.post(scene.envelope())
        _ = scene.effects()
        scene.shard.endRegistration(scene.slot, at: scene.now)
        #expect(scene.effects() == ["settle 1 after discardedUnregistered"])
    }

    @Test func `removing an app records the end of a delivery without storage`() {
        var scene = Scene(connected: true)
        _ = scene.shard.post(scene.envelope(stored: false))
        _ = scene.effects()
        scene.shard.endRegistration(scene.slot, at: scene.now)
        #expect(scene.effects() == ["record 1 discardedUnregistered"])
    }

    @Test func `a write during the removal of an app is not kept for the next registration`() throws {
        var scene = Scene()
        _ = scene.shard.post(scene.envelope())
        let (envelope, tag) = try #require(scene.puts().first)
        scene.shard.endRegistration(scene.slot, at: scene.now)
        scene.shard.stored(StoredPut(envelope: envelope, sequence: 9, tag: tag))
        #expect(scene.effects() == ["settle 1 accepted", "remove 9 discardedUnregisteredFromStorage"])
        scene.shard.stored(StoredPut(envelope: envelope, sequence: 9, tag: tag, isReplaced: true))
        #expect(scene.effects() == ["settle 1 accepted"])
    }

    @Test func `a newer acknowledgement removes an older notification from the store`() throws {
        var scene = Scene(connected: true)
        _ = scene.shard.post(scene.envelope())
        _ = scene.effects()
        scene.shard.tick()
        scene.shard.tick()
        let (envelope, tag) = try #require(scene.puts().first)
        scene.shard.stored(StoredPut(envelope: envelope, sequence: 5, tag: tag))
        _ = scene.effects()
        _ = scene.shard.post(scene.envelope())
        let newer = try #require(scene.deliveries().first)
        scene.shard.finished(scene.slot, fence: 1, delivery: newer.number, result: .acknowledged)
        #expect(scene.effects() == ["record 2 delivered", "settle 2 accepted", "replace 1 at 5 by 2"])
        scene.shard.detach(scene.slot.device, fence: 1)
        #expect(scene.effects().isEmpty)
    }

    @Test func `a newer acknowledgement settles an unstored older delivery as replaced`() throws {
        var scene = Scene(connected: true)
        _ = scene.shard.post(scene.envelope())
        _ = scene.shard.post(scene.envelope())
        let deliveries = scene.deliveries()
        scene.shard.finished(scene.slot, fence: 1, delivery: deliveries[1].number, result: .acknowledged)
        #expect(scene.effects() == ["record 2 delivered", "settle 2 accepted", "replace 1 by 2"])
        scene.shard.tick()
        scene.shard.tick()
        #expect(scene.effects().isEmpty)
        scene.shard.finished(scene.slot, fence: 1, delivery: deliveries[0].number, result: .acknowledged)
        #expect(scene.effects() == ["record 1 delivered"])
    }

    @Test func `a delivery finished during its write is removed even after the connection is gone`() throws {
        var scene = Scene(connected: true)
        _ = scene.shard.post(scene.envelope())
        let delivery = try #require(scene.deliveries().first)
        scene.shard.tick()
        scene.shard.tick()
        let (envelope, tag) = try #require(scene.puts().first)
        scene.shard.finished(scene.slot, fence: 1, delivery: delivery.number, result: .acknowledged)
        scene.shard.detach(scene.slot.device, fence: 1)
        scene.shard.stored(StoredPut(envelope: envelope, sequence: 5, tag: tag))
        #expect(scene.effects() == ["settle 1 accepted", "remove 5 delivered"])
        #expect(scene.shard.detached.isEmpty)
    }

    @Test func `an acknowledgement of an ended delivery is ignored`() throws {
        var scene = Scene(connected: true)
        _ = scene.shard.post(scene.envelope())
        let delivery = try #require(scene.deliveries().first)
        scene.shard.finished(scene.slot, fence: 1, delivery: delivery.number, result: .acknowledged)
        _ = scene.effects()
        _ = scene.shard.post(scene.envelope())
        _ = scene.effects()
        scene.shard.finished(scene.slot, fence: 1, delivery: delivery.number, result: .acknowledged)
        #expect(scene.effects().isEmpty)
    }

    // MARK: - Writes from before the connection

    @Test func `a notification is stored behind a write from before the connection`() throws {
        var scene = Scene()
        _ = scene.shard.post(scene.envelope())
        let (old, oldTag) = try #require(scene.puts().first)
        scene.connect(fence: 1)
        _ = scene.shard.post(scene.envelope())
        let (new, newTag) = try #require(scene.puts().first)
        scene.shard.stored(StoredPut(envelope: old, sequence: 5, tag: oldTag))
        #expect(scene.effects() == ["settle 1 accepted", "deliver 1"])
        scene.shard.stored(StoredPut(envelope: new, sequence: 6, tag: newTag))
        #expect(scene.effects() == ["settle 2 accepted", "deliver 2"])
        _ = scene.shard.post(scene.envelope())
        #expect(scene.effects() == ["record 3 received", "deliver 3"])
    }

    @Test func `the next connection adopts every write of the last one`() throws {
        var scene = Scene(connected: true, limit: 1)
        _ = scene.shard.post(scene.envelope())
        _ = scene.shard.post(scene.envelope())
        let puts = scene.puts()
        #expect(puts.map(\.0.notification.id.low) == [1, 2])
        scene.connect(fence: 2)
        #expect(scene.shard.connections[scene.slot.device]?.gates[scene.slot.app]?.unconfirmedWrites == 2)
        for (sequence, put) in puts.enumerated() {
            scene.shard.stored(StoredPut(envelope: put.0, sequence: UInt64(sequence) + 5, tag: put.1))
        }
        #expect(scene.shard.connections[scene.slot.device]?.gates[scene.slot.app]?.unconfirmedWrites == 0)
    }

    @Test func `a new subscription adopts the writes of the last one`() throws {
        var scene = Scene(connected: true, limit: 1)
        _ = scene.shard.post(scene.envelope())
        _ = scene.shard.post(scene.envelope())
        _ = scene.effects()
        scene.shard.close(scene.slot, fence: 1)
        #expect(scene.shard.slots.unconfirmedWrites == [scene.slot: 1])
        scene.shard.open(scene.slot, fence: 1, qualityOfService: 1)
        #expect(scene.shard.slots.unconfirmedWrites.isEmpty)
        #expect(scene.shard.connections[scene.slot.device]?.gates[scene.slot.app]?.unconfirmedWrites == 1)
    }

    @Test func `an unconfirmed write outlives its registration`() throws {
        var scene = Scene()
        _ = scene.shard.post(scene.envelope())
        let put = try #require(scene.puts().first)
        let registration = try #require(scene.shard.slots.registration(scene.slot))
        scene.shard.slots.forgetRegistration(scene.slot)
        #expect(scene.shard.post(scene.envelope()) == .refused(.badDeviceToken, since: nil))
        #expect(scene.shard.slots.unconfirmedWrites == [scene.slot: 1])
        scene.shard.slots.setRegistration(registration)
        scene.connect(fence: 1)
        #expect(scene.shard.connections[scene.slot.device]?.gates[scene.slot.app]?.unconfirmedWrites == 1)
        scene.shard.stored(StoredPut(envelope: put.0, sequence: 5, tag: put.1))
        scene.shard.slots.forgetRegistration(scene.slot)
        #expect(scene.shard.slots.isEmpty)
    }

    @Test func `a confirmed or failed write is no longer counted`() throws {
        var scene = Scene()
        _ = scene.shard.post(scene.envelope())
        _ = scene.shard.post(scene.envelope())
        let puts = scene.puts()
        #expect(scene.shard.slots.unconfirmedWrites == [scene.slot: 2])
        scene.shard.stored(StoredPut(envelope: puts[0].0, sequence: 5, tag: nil))
        scene.shard.couldNotStore(puts[1].0, .refused(.serviceUnavailable))
        #expect(scene.shard.slots.unconfirmedWrites.isEmpty)
        _ = scene.effects()
        scene.connect(fence: 1)
        _ = scene.shard.post(scene.envelope())
        #expect(scene.effects() == ["record 3 received", "deliver 3"])
    }
}
