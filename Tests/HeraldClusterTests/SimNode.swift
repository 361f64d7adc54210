import HeraldCluster
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Logging
import NIOCore
import Synchronization

/// A mistake that the simulation must find.
enum Mutation: String, CaseIterable {
    /// A refusal is confirmed by a read of any replica.
    case noBarrier
    /// A refusal is confirmed by a server that believes that it leads.
    case leaderRead
    /// An older notification than the last that was delivered is delivered too.
    case noSequenceGuard
    /// A ring is used although the read after the claim had to contain its notification.
    case ringsUpToTheClaim
    /// A read has what was stored before the claim, and not what this node has stored since.
    case boundIsTheClaim
    /// A put with an unknown outcome is refused with 503.
    case unknownIsRefused
    /// A ring that is lost is not repeated.
    case ringOnce
    /// The subject of a slot has no generation.
    case noGeneration
}

/// The world of a simulated cluster, as far as its nodes see it.
///
/// Unchecked: one thread runs the whole simulation.
final class SimWorld: @unchecked Sendable {
    let time = SimTime()
    let chance: SimChance
    let log: SimLog
    let mutation: Mutation?
    let partition = Partition(0)
    var nodes: [SimNode] = []
    /// The nodes that do not reach the log, by index.
    var cutOff: Set<Int> = []
    /// Whether the nodes do not hear each other.
    var isDeaf = false
    /// The sequences whose rings were given up.
    var givenUp: Set<UInt64> = []
    /// The events so far, in words; nil unless somebody wants to read them.
    private(set) var trace: [String]?

    init(seed: UInt64, mutation: Mutation?, isTraced: Bool) {
        if isTraced { trace = [] }
        chance = SimChance(seed: seed)
        log = SimLog(scheduler: time, chance: chance)
        self.mutation = mutation
    }

    func note(_ words: @autoclosure () -> String) {
        if trace != nil { trace?.append("\(time.nanoseconds / 1000) \(words())") }
    }

    /// The true time, from which the clock of each node differs by its skew.
    var wallTime: WallTime { WallTime(seconds: 1_800_000_000) + .nanoseconds(time.nanoseconds) }

    /// Carries a message from one node to another.
    func send(from: Int, to: Int, isRepetition: Bool, _ deliver: @escaping @Sendable (SimNode) -> Void) {
        // A lost ring is heard when it is repeated, unless the nodes are apart.
        if isDeaf && chance.fails(oneIn: 1) || !isRepetition && chance.fails(oneIn: 5) { return }
        let delay: Duration =
            chance.fails(oneIn: 6) ? .milliseconds(chance.below(1500)) : .milliseconds(chance.below(3))
        time.run(after: delay) { [self] in
            let node = nodes[to]
            node.enter { deliver(node) }
        }
    }
}

/// A node: a real post office on a real cluster mailbox.
///
/// Unchecked: one thread runs the whole simulation.
final class SimNode: @unchecked Sendable {
    let index: Int
    let name: NodeName
    let world: SimWorld
    let postOffice: PostOffice
    let mailbox: ClusterMailbox
    let directory: ClusterDirectory
    let barriers: LogBarriers
    let log: NodeLog
    private let reporter: NodeReporter
    var held = HeldDevices()
    /// The newest claim of each device, as far as this node has followed the log.
    private var claims: [DeviceNumber: (sequence: UInt64, node: NodeName?)] = [:]
    private var followedTo: UInt64 = 0
    private var rings: [UInt64: (ring: Ring, put: StoredPut)] = [:]
    private var registrationSequences: [DeviceNumber: UInt64] = [:]
    private var followings: [any LogFollowing] = []
    private(set) var isAlive = true
    private(set) var isReady = false
    /// Everything that the node does waits until then.
    var pausedUntil: Int64 = 0
    private var waiting: [@Sendable () -> Void] = []

    init(index: Int, name: NodeName, world: SimWorld, skew: Duration) throws {
        self.index = index
        self.name = name
        self.world = world
        log = NodeLog(world, index)
        let clock = SkewedClock(world: world, skew: skew)
        let store = SimStore()
        guard let partitions = Partitions(count: 1) else { throw LogFailure.unavailable }
        barriers = LogBarriers(log: log, node: name)
        mailbox = ClusterMailbox(
            log: log,
            barriers: barriers,
            partitions: partitions,
            node: name,
            journal: store,
            clock: clock,
            scheduler: NodeTime(log, world.time),
            logger: Logger(label: "simulation") { _ in SwiftLogNoOpLogHandler() }
        )
        store.mailbox = mailbox
        let record = ClaimRecord(node: name, incarnation: 1)
        directory = ClusterDirectory(log: log, partitions: partitions, record: record, mailbox: mailbox)
        var configuration = PostOfficeConfiguration()
        configuration.storesFirst = true
        configuration.shardCount = 1
        configuration.inFlightPerDevice = 2
        configuration.backgroundPerHour = 0
        let shared = SimSharedState()
        postOffice = PostOffice(
            configuration: configuration,
            clock: clock,
            store: store,
            directory: directory,
            confirmations: RefusalConfirmations(shared: shared, clock: clock),
            logger: Logger(label: "simulation") { _ in SwiftLogNoOpLogHandler() }
        )
        reporter = NodeReporter()
        store.node = self
        shared.node = self
        log.node = self
        reporter.node = self
        mailbox.report(to: reporter)
    }

    func start() {
        let follower = NodeFollower(self)
        let registrations = LogStream.registrations(world.partition)
        followings = [
            world.log.follow([.claims(world.partition)], in: .mailbox(world.partition), after: nil, follower),
            world.log.follow([registrations.subjects], in: registrations, after: nil, follower),
        ]
        begin()
    }

    private func begin() {
        mailbox.start { [self] result in
            if case .success = result { isReady = true } else { begin() }
        }
    }

    /// The process dies: nothing that was on its way comes back to it.
    func crash() {
        isAlive = false
        for following in followings { following.cancel() }
    }

    /// Runs work of the node, later if it is paused, and never if it has died.
    func enter(_ work: @escaping @Sendable () -> Void) {
        guard isAlive else { return }
        guard pausedUntil > world.time.nanoseconds || !waiting.isEmpty else { return work() }
        waiting.append(work)
        if waiting.count == 1 { awaitEndOfPause() }
    }

    private func awaitEndOfPause() {
        let rest = max(0, pausedUntil - world.time.nanoseconds)
        world.time.run(after: .nanoseconds(rest)) { [self] in
            if pausedUntil > world.time.nanoseconds { return awaitEndOfPause() }
            // In the order in which it came, and before anything that comes later.
            var index = 0
            while index < waiting.count {
                if isAlive { waiting[index]() }
                index += 1
            }
            waiting = []
        }
    }

    // MARK: - Rings

    /// Something was stored by this node.
    func stored(_ put: StoredPut) {
        let device = put.envelope.notification.slot.device
        guard !put.isReplaced else { return }
        var ring = Ring(of: name)
        let order = ring.begin(hint: claims[device]?.node)
        rings[put.sequence] = (ring, put)
        world.note("\(name.text) has stored \(put.sequence), hint \(claims[device]?.node?.text ?? "-")")
        perform(order, put.sequence)
        settleRings()
        awaitAnswer(put.sequence)
    }

    private func awaitAnswer(_ sequence: UInt64) {
        guard rings[sequence] != nil else { return }
        world.time.run(after: .milliseconds(200)) { [self] in
            enter { [self] in
                guard rings[sequence] != nil else { return }
                if world.mutation == .ringOnce {
                    rings[sequence] = nil
                    return
                }
                let order = rings[sequence]?.ring.timedOut() ?? nil
                perform(order, sequence)
                if rings[sequence]?.ring.isGivenUp ?? false {
                    world.givenUp.insert(sequence)
                    rings[sequence] = nil
                }
                awaitAnswer(sequence)
            }
        }
    }

    /// Tells the rings whose claims are known by now who held the device.
    private func settleRings() {
        for (sequence, (_, put)) in rings where sequence <= followedTo {
            let claim = claims[put.envelope.notification.slot.device]
            let holder = claim.flatMap { $0.sequence < sequence ? $0.node : nil }
            perform(rings[sequence]?.ring.wasHeld(by: holder) ?? nil, sequence)
            world.note("\(name.text) knows that \(holder?.text ?? "nobody") held the device at \(sequence)")
            if rings[sequence]?.ring.isAnswered ?? false { rings[sequence] = nil }
        }
    }

    private func perform(_ order: Ring.Order?, _ sequence: UInt64) {
        guard let put = rings[sequence]?.put else { return }
        switch order {
        case nil: break
        case .send(let node):
            guard let to = world.nodes.firstIndex(where: { $0.name == node }) else { return }
            send(put, to: to, isRepetition: false)
        case .sendToAll:
            for to in world.nodes.indices where to != index { send(put, to: to, isRepetition: true) }
        }
    }

    private func send(_ put: StoredPut, to: Int, isRepetition: Bool) {
        let from = index
        world.send(from: from, to: to, isRepetition: isRepetition) { node in
            node.rung(put)
            node.world.send(from: to, to: from, isRepetition: isRepetition) { [name = node.name] sender in
                sender.rings[put.sequence]?.ring.answered(by: name)
                if sender.rings[put.sequence]?.ring.isAnswered ?? false { sender.rings[put.sequence] = nil }
            }
        }
    }

    /// Another node has stored something.
    private func rung(_ put: StoredPut) {
        let slot = put.envelope.notification.slot
        if world.mutation != .boundIsTheClaim { mailbox.saw(put.sequence, of: slot.device) }
        let isNews = held.isNews(put.sequence, of: slot) || world.mutation == .ringsUpToTheClaim
        // A node whose registry is behind reads the slot when it has caught up.
        let isKnown = postOffice.registration(slot)?.isLive(in: put.envelope.generation) ?? false
        world.note("\(name.text) is rung for \(put.sequence): news \(isNews), known \(isKnown)")
        guard isNews, isKnown, held.fence(of: slot.device) != nil else { return }
        let envelope = Envelope(put.envelope.notification, generation: put.envelope.generation)
        reporter.tell([StoredPut(envelope: envelope, sequence: put.sequence, tag: nil)])
    }

    // MARK: - What the log says

    func followed(_ entries: [LogEntry]) {
        for entry in entries {
            if let device = entry.subject.claimedDevice {
                let record = try? ClaimRecord(entry.payload)
                claims[device] = (entry.sequence, record?.node)
                if record != nil, let fence = held.saw(claim: entry.sequence, of: device) {
                    postOffice.dismiss(.takenOver, only: device)
                    postOffice.detach(device, fence: fence)
                }
            } else if let record = SimRegistration(entry.payload) {
                apply(record, entry.sequence)
            }
        }
    }

    func followed(to sequence: UInt64) {
        followedTo = max(followedTo, sequence)
        settleRings()
    }

    /// The newest claim or release of a device that the node has seen.
    func newestClaim(of device: DeviceNumber) -> UInt64? { claims[device]?.sequence }

    /// The log's sequence of what the post office removes.
    func truth(_ sequence: UInt64) -> UInt64 { reporter.truth(sequence) }

    /// Takes over what the log says about a registration, unless something newer is known.
    func apply(_ record: SimRegistration, _ sequence: UInt64) {
        guard sequence > registrationSequences[record.device] ?? 0 else { return }
        registrationSequences[record.device] = sequence
        let now = world.wallTime
        for (index, generation) in record.generations.enumerated() {
            let slot = Slot(device: record.device, app: AppNumber(UInt32(index + 1)))
            guard postOffice.registration(slot)?.generation != generation else { continue }
            postOffice.replaceRegistration(
                Registration(slot: slot, generation: generation, isLive: true, registered: now)
            )
        }
    }

    // MARK: - Providers

    /// Posts a notification; `refused` hears a refusal that comes at once.
    func post(_ envelope: Envelope, _ refused: (RefusalReason) -> Void) {
        switch postOffice.post(envelope) {
        case .pending: break
        case .accepted: envelope.completion?.settle(.accepted)
        case .refused(let reason, _): refused(reason)
        }
    }
}

/// The registrations that the nodes of a simulated cluster share: read behind a barrier, or as a mutation has it.
///
/// Unchecked: one thread runs the whole simulation.
final class SimSharedState: SharedState, @unchecked Sendable {
    weak var node: SimNode?

    func catchUp(_ part: SharedPart, _ done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        guard let node, case .registrations(let device) = part else { return done(.success(())) }
        let stream = LogStream.registrations(node.world.partition)
        let subject = LogSubject.registrations(device, node.world.partition)
        let finish: @Sendable (Result<[LogEntry], LogFailure>) -> Void = { result in
            if let entry = try? result.get().first(where: { $0.subject == subject }),
                let record = SimRegistration(entry.payload)
            {
                node.apply(record, entry.sequence)
            }
            done(result.map { _ in }.mapError { $0 as any Error })
        }
        switch node.world.mutation {
        case .noBarrier: node.log.read([subject], in: stream, atLeast: 0, finish)
        case .leaderRead: node.world.log.readFromLeader([subject], in: stream, finish)
        default: node.barriers.read([subject], in: stream, finish)
        }
    }
}
