import HeraldCluster
import HeraldMailbox
import HeraldModel
import NIOCore

/// A notification that a provider of the simulation has posted.
struct SimPost {
    enum Answer {
        case accepted
        /// 503, or 429.
        case unavailable
        /// 400 or 410.
        case refused
        /// The stream was closed.
        case closed
    }

    let slot: RegisteredSlot
    let storedUntil: WallTime?
    let node: SimNode
    /// The moments in the order of events.
    let begun: Int
    /// The time at which the provider sent it.
    let sent: Int64
    var answered: Int?
    var answer: Answer?
    var answers = 0
    /// The sequence number of the registration that had begun when the refusal came.
    var generationAtAnswer: UInt32 = 0
}

/// A cluster of real post offices and cluster mailboxes in virtual time, played from one seed.
///
/// Unchecked: one thread runs the whole simulation.
final class SimCluster: CompletionHandler, @unchecked Sendable {
    let world: SimWorld
    private(set) var devices: [SimDevice] = []
    private(set) var posts: [SimPost] = []
    /// The times that all faults end in a history.
    private static let calms = 2

    private let names: [NodeName]
    private let schedule: SimSchedule
    var random: SeededGenerator
    private var moment = 0

    init(seed: UInt64, mutation: Mutation? = nil, isTraced: Bool = false) throws {
        world = SimWorld(seed: seed, mutation: mutation, isTraced: isTraced)
        var random = SeededGenerator(state: seed &* 31 &+ 7)
        schedule = SimSchedule(&random)
        self.random = random
        names = try ["a", "b", "c"].prefix(2 + random.below(2)).map { name in
            guard let name = NodeName(name) else { throw LogFailure.unavailable }
            return name
        }
        for (index, name) in names.enumerated() { world.nodes.append(try node(index, name)) }
        for number in 1...2 + random.below(2) {
            devices.append(SimDevice(UInt64(number), apps: 1 + random.below(2), world: world))
        }
    }

    private func node(_ index: Int, _ name: NodeName) throws -> SimNode {
        let skew = Duration.milliseconds(random.below(1000) - 500)
        return try SimNode(index: index, name: name, world: world, skew: skew)
    }

    private func now() -> Int {
        moment += 1
        return moment
    }

    // MARK: - The schedule

    /// Plays a history, and returns what was wrong with it.
    func play(steps: Int) throws -> [String] {
        for node in world.nodes { node.start() }
        for device in devices {
            let record = SimRegistration(device: device.number, generations: device.generations)
            device.register(record, at: world.nodes[0]) {}
        }
        world.time.pass(.milliseconds(300))
        for _ in 0..<Self.calms {
            for _ in 0..<steps / Self.calms {
                try step()
                world.time.pass(pause())
            }
            settle()
            let violations = SimOracle(self).violations()
            if !violations.isEmpty { return violations }
            world.chance.setCalm(false)
        }
        for device in devices { device.disconnect(isNoticed: true) }
        world.end()
        return []
    }

    private func pause() -> Duration {
        switch random.below(20) {
        case 0: .milliseconds(random.below(1500))
        case 1...4: .milliseconds(random.below(60))
        default: .microseconds(random.below(3000))
        }
    }

    private func step() throws {
        let device = devices[random.below(devices.count)]
        let node = world.nodes[random.below(world.nodes.count)]
        let step = schedule.step(&random)
        world.note("step \(step) of device \(device.number.value) and \(node.name.text), cut off: \(world.cutOff)")
        switch step {
        case .post: post(to: device, at: node)
        case .connect: device.connect(to: node)
        case .disconnect: device.disconnect(isNoticed: random.below(3) > 0)
        case .savePower: device.setSavingPower(random.below(2) == 0)
        case .stall: device.setStalled(random.below(2) == 0)
        case .reinstall: reinstall(device, at: node)
        case .cutOff: if world.cutOff.remove(node.index) == nil { world.cutOff.insert(node.index) }
        case .pause: node.pausedUntil = world.time.nanoseconds + Int64(random.below(3_000)) * 1_000_000
        case .restart: try restart(node)
        case .deafen: world.isDeaf.toggle()
        case .depose: toggleLeader()
        case .release: node.enter { node.postOffice.release() }
        case .rotate: rotate()
        case .standStill: standStill()
        }
    }

    private func toggleLeader() {
        let stream = LogStream.registrations(world.partition)
        let isStale = world.log.stream(stream).staleLeader != nil
        world.log.setStaleLeader(isStale ? nil : random.below(3), of: stream)
    }

    private func restart(_ node: SimNode) throws {
        node.crash()
        for device in devices where device.link?.node === node { device.disconnect(isNoticed: false) }
        let new = try self.node(node.index, node.name)
        world.nodes[node.index] = new
        new.start()
    }

    func reinstall(_ device: SimDevice, at node: SimNode) {
        guard node.isReady else { return }
        device.reinstall(random.below(device.generations.count), at: node) {}
    }

    func post(to device: SimDevice, at node: SimNode) {
        guard node.isReady else { return }
        let app = random.below(device.generations.count)
        let newest = device.generations[app]
        let generation = newest > 1 && random.oneIn(5) ? newest - 1 : newest
        let number = UInt64(posts.count)
        let lifetime: Duration? = random.oneIn(12) ? nil : random.oneIn(8) ? .milliseconds(3000) : .seconds(3600)
        let isUrgent = random.below(4) > 0
        let notification = Notification(
            id: NotificationID(high: 1, low: number),
            uniqueID: NotificationID(high: 2, low: number),
            slot: device.slot(app),
            received: world.wallTime,
            storedUntil: lifetime.map { world.wallTime + $0 },
            priority: isUrgent ? .immediate : .conserving,
            pushType: .alert,
            collapseID: nil,
            payload: []
        )
        posts.append(
            SimPost(
                slot: RegisteredSlot(notification.slot, generation: generation),
                storedUntil: notification.storedUntil,
                node: node,
                begun: now(),
                sent: world.time.nanoseconds
            )
        )
        let completion = Completion(handler: self, number: number)
        let envelope = Envelope(notification, generation: generation, completion: completion)
        let key = world.sealingKey
        node.enter(isRequest: true) { [self] in
            node.post(envelope, under: key) { [self] reason in
                refuse(number, reason)
            }
        }
    }

    func settle(_ number: UInt64, _ outcome: CompletionOutcome) {
        switch outcome {
        case .accepted: answer(number, .accepted)
        case .refused(let reason, _): refuse(number, reason)
        case .unknown, .decideAgain: answer(number, .closed)
        }
    }

    private func refuse(_ number: UInt64, _ reason: RefusalReason) {
        world.note("\(number) is refused: \(reason)")
        let saysNothingOfTheToken = reason == .serviceUnavailable || reason == .tooManyRequests
        answer(number, saysNothingOfTheToken ? .unavailable : .refused)
    }

    private func answer(_ number: UInt64, _ answer: SimPost.Answer) {
        let index = Int(number)
        posts[index].answers += 1
        posts[index].answer = answer
        posts[index].answered = now()
        let slot = posts[index].slot
        let device = devices.first { $0.number == slot.slot.device }
        posts[index].generationAtAnswer = device?.begun[Int(slot.slot.app.value) - 1] ?? 0
    }

    /// The time at which a registration was known to have ended; nil if it is not.
    func ends(_ slot: RegisteredSlot) -> Int64? {
        let device = devices.first { $0.number == slot.slot.device }
        return device?.ended[Int(slot.slot.app.value) - 1][slot.generation]
    }

    /// The history in words, for somebody who looks for the cause of a violation.
    var history: String {
        let lines = posts.enumerated().map { number, post in
            let slot = "\(post.slot.slot.device.value).\(post.slot.slot.app.value) generation \(post.slot.generation)"
            let end = post.answer.map { "\($0) at \(post.answered ?? 0)" } ?? "no answer"
            let node = "\(post.node.name.text)\(post.node.isAlive ? "" : " (dead)")"
            return "\(number) to \(slot) at \(node), begun \(post.begun), \(end)"
        }
        let stream = world.log.stream(.mailbox(world.partition))
        let records = stream.records.flatMap { subject, records in
            records.map { record in
                let slot = subject.slot?.slot
                let post = slot.flatMap { try? SlotRecord(record.payload).notification(to: $0).id.low }
                let claim = subject.claimedDevice.flatMap { _ in try? ClaimRecord(record.payload).node.text }
                let content = post.map { "\($0)" } ?? claim ?? "-"
                return (record.sequence, "\(record.sequence) \(subject): \(content)")
            }
        }
        let ends = devices.map { device in
            let place = device.link.map { "\($0.node.name.text) by \($0.fence)" } ?? "nowhere"
            return "device \(device.number.value) is at \(place), and showed \(device.shown)"
        }
        return ((world.trace ?? []) + lines + ends + records.sorted { $0.0 < $1.0 }.map(\.1)).joined(separator: "\n")
    }

    /// Ends all faults, and lets everything finish.
    private func settle() {
        world.chance.setCalm(true)
        world.cutOff = []
        world.isDeaf = false
        world.log.setStaleLeader(nil, of: .registrations(world.partition))
        for node in world.nodes { node.pausedUntil = 0 }
        // A ring waits twice as long as the longest pause for a node that answers others.
        world.time.pass(.seconds(15))
        for _ in 0..<12 {
            for device in devices {
                device.setStalled(false)
                if device.isSavingPower { device.setSavingPower(false) }
                if !device.isConnected { device.connect(to: world.nodes[random.below(world.nodes.count)]) }
            }
            for node in world.nodes { node.postOffice.release() }
            world.time.pass(.milliseconds(400))
        }
    }
}
