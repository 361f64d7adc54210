import HeraldModel
import Testing

@testable import HeraldMailbox

/// Random histories of one device with two apps, against the promise: what was accepted was acknowledged, is stored, or
/// gave way to a newer one; nothing is sent twice on one connection, or after it gave way, or after a newer one was
/// acknowledged; the newest of each app arrives in the end.
@Suite struct DeliveryHistoryTests {
    @Test(arguments: 0..<40)
    func `a thousand random steps lose and repeat no notification`(seed: UInt64) throws {
        var history = History(seed: seed)
        for _ in 0..<1000 { history.step() }
        history.settleDown()
        #expect(history.violations.isEmpty, "seed \(seed): \(history.violations.prefix(3))")
        #expect(history.posted > 100 && history.acknowledged.count > 10 && history.replacedInCommit > 0)
    }

    @Test func `the check finds a notification that was lost`() {
        var history = History(seed: 1, losesPuts: true)
        for _ in 0..<1000 { history.step() }
        history.settleDown()
        #expect(!history.violations.isEmpty)
    }
}

/// SplitMix64: the same numbers for the same seed, everywhere.
private struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

private final class SilentLink: DeviceLink {
    func deliver(_ delivery: Delivery) {}
    func dismiss(_ reason: DismissalReason) {}
}

/// A shard, and a store and a device played by the test, each taking its steps when chance says so.
private struct History {
    private let slots = [1, 2].map { Slot(device: DeviceNumber(1), app: AppNumber($0)) }
    private let now = WallTime(seconds: 1_800_000_000)
    private let losesPuts: Bool
    private var random: SeededGenerator
    private var shard = DeliveryShard(inFlightLimit: 3)
    private var fence: UInt64 = 0
    private var isConnected = false
    /// Ordered and not durable, in order.
    private var puts: [(Envelope, PutTag?)] = []
    private var reads: [([Slot], UInt64)] = []
    private var deliveries: [Delivery] = []
    private var sequence: UInt64 = 0
    private var held: [Slot: StoredNotification] = [:]
    private var replaced: Set<UInt64> = []
    private(set) var replacedInCommit = 0
    private var settled: [UInt64: Int] = [:]
    private var sentOnConnection: Set<UInt64> = []
    private var newest: [Slot: UInt64] = [:]
    private var newestAcknowledged: [Slot: UInt64] = [:]
    private(set) var posted: UInt64 = 0
    private(set) var acknowledged: Set<UInt64> = []
    private(set) var violations: [String] = []

    init(seed: UInt64, losesPuts: Bool = false) {
        random = SeededGenerator(state: seed)
        self.losesPuts = losesPuts
        for slot in slots {
            shard.slots.setRegistration(Registration(slot: slot, generation: 0, isLive: true, registered: now))
        }
    }

    mutating func step() {
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<25: post()
        case 25..<45: acknowledgeOne()
        case 45..<65: commitSome()
        case 65..<80: finishRead()
        case 80..<92: shard.tick()
        case 92..<96: disconnect()
        default: connect()
        }
        perform()
    }

    /// Connects, and lets everything finish.
    mutating func settleDown() {
        connect()
        perform()
        for _ in 0..<10_000
        where !(puts.isEmpty && reads.isEmpty && deliveries.isEmpty && !shard.isAwaitingAcknowledgements) {
            commitSome()
            finishRead()
            acknowledgeOne()
            shard.tick()
            perform()
        }
        for (slot, id) in newest where !acknowledged.contains(id) {
            violations.append("\(id) of \(slot.app) never arrived")
        }
        for id in 1...max(1, posted) where settled[id] != 1 {
            violations.append("\(id) was settled \(settled[id] ?? 0) times")
        }
        if !held.isEmpty { violations.append("acknowledged, and still stored: \(held.values.map(\.sequence))") }
        let pending = shard.connections.values.flatMap(\.gates.values).map(\.unconfirmedWrites)
        if pending.contains(where: { $0 > 0 }) || !shard.slots.unconfirmedWrites.isEmpty {
            violations.append("nothing is on its way into the store, and the shard waits for it")
        }
    }

    private mutating func post() {
        posted += 1
        guard let slot = slots.randomElement(using: &random) else { return }
        let notification = Notification(
            id: NotificationID(high: 0, low: posted),
            uniqueID: NotificationID(high: 1, low: posted),
            slot: slot,
            received: now,
            storedUntil: now + .seconds(60),
            priority: .immediate,
            pushType: .alert,
            collapseID: nil,
            payload: []
        )
        newest[slot] = posted
        if shard.post(Envelope(notification, generation: 0)) != .pending {
            violations.append("\(posted) was not taken")
        }
    }

    private mutating func acknowledgeOne() {
        guard let index = deliveries.indices.randomElement(using: &random) else { return }
        let delivery = deliveries.remove(at: index)
        let notification = delivery.envelope.notification
        acknowledged.insert(notification.id.low)
        newestAcknowledged[notification.slot] = max(newestAcknowledged[notification.slot] ?? 0, notification.id.low)
        shard.finished(notification.slot, fence: fence, delivery: delivery.number, result: .acknowledged)
    }

    /// One commit: reported when all of it is durable, and what something later in it replaced is reported as that.
    private mutating func commitSome() {
        var reports: [StoredPut] = []
        for _ in 0..<Int.random(in: 0...3, using: &random) where !puts.isEmpty {
            let (envelope, tag) = puts.removeFirst()
            let slot = envelope.notification.slot
            sequence += 1
            if let old = held[slot] { replaced.insert(old.notification.id.low) }
            held[slot] =
                losesPuts
                ? nil
                : StoredNotification(
                    notification: envelope.notification,
                    generation: 0,
                    sequence: sequence
                )
            reports.append(StoredPut(envelope: envelope, sequence: sequence, tag: tag))
        }
        for put in reports {
            let isReplaced = replaced.contains(put.envelope.notification.id.low)
            if isReplaced { replacedInCommit += 1 }
            shard.stored(
                StoredPut(envelope: put.envelope, sequence: put.sequence, tag: put.tag, isReplaced: isReplaced)
            )
            perform()
        }
    }

    private mutating func finishRead() {
        guard !reads.isEmpty else { return }
        let (slots, number) = reads.removeFirst()
        shard.haveRead(slots, found: slots.compactMap { held[$0] }, number: number, now: now)
    }

    private mutating func connect() {
        fence += 1
        isConnected = true
        deliveries = []
        sentOnConnection = []
        shard.attach(DeviceNumber(1), link: SilentLink(), isSavingPower: false, fence: fence)
        for slot in slots { shard.open(slot, fence: fence, qualityOfService: 1) }
    }

    private mutating func disconnect() {
        guard isConnected else { return }
        isConnected = false
        deliveries = []
        shard.detach(DeviceNumber(1), fence: fence)
    }

    private mutating func perform() {
        let effects = shard.effects
        shard.clearEffects()
        for effect in effects {
            switch effect {
            case .deliver(_, let delivery):
                let id = delivery.envelope.notification.id.low
                if !sentOnConnection.insert(id).inserted { violations.append("\(id) was sent twice on one connection") }
                // What is on its way into the store is not found there, nor has it replaced anything yet.
                let slot = delivery.envelope.notification.slot
                let isBeingReplaced = puts.contains { $0.0.notification.slot == slot && $0.0.notification.id.low > id }
                if !isBeingReplaced, id < newestAcknowledged[slot] ?? 0 {
                    violations.append("\(id) was sent after a newer one was acknowledged")
                }
                if replaced.contains(id) { violations.append("\(id) was sent after a newer one had replaced it") }
                deliveries.append(delivery)
            case .read(let slots, let number): reads.append((slots.map(\.slot), number))
            case .dismiss: break
            case .envelope(let envelope, let effect): perform(effect, on: envelope)
            }
        }
    }

    private mutating func perform(_ effect: EnvelopeEffect, on envelope: Envelope) {
        let notification = envelope.notification
        switch effect {
        case .store(_, let tag): puts.append((envelope, tag))
        case .remove(let sequence, _, let newer):
            if held[notification.slot]?.sequence == sequence { held[notification.slot] = nil }
            if newer != nil { replaced.insert(notification.id.low) }
        case .settle(let outcome): settle(notification, outcome)
        case .acceptAndRecord: settle(notification, .accepted)
        case .recordThenAccept(_, replacement: _?):
            replaced.insert(notification.id.low)
            settle(notification, .accepted)
        case .record, .recordThenAccept(_, nil), .passOn: break
        }
    }

    private mutating func settle(_ notification: Notification, _ outcome: CompletionOutcome) {
        let id = notification.id.low
        settled[id, default: 0] += 1
        let isSafe =
            acknowledged.contains(id) || replaced.contains(id) || held[notification.slot]?.notification.id.low == id
        if outcome != .accepted || !isSafe { violations.append("\(id) was accepted, and is nowhere") }
    }
}
