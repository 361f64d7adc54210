import HeraldCluster
import HeraldMailbox
import HeraldModel
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
    /// A newer notification takes the place of one for a connected device.
    case overtakesForConnected
    /// A token under a key that the node does not know is refused at once.
    case refusesUnknownSeals
    /// A node that has stood still accepts by what it knew before.
    case acceptsWhenBehind
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
    /// The newest token key, and the one that seals.
    var lastKey: SimKey = 1
    var sealingKey: SimKey = 1
    /// The nodes that do not reach the log, by index.
    var cutOff: Set<Int> = []
    /// A mistake: a claim does not name the one that it replaces.
    var claimsAreUnconditional = false
    /// Whether the nodes do not hear each other.
    var isDeaf = false
    /// The connections that there have been.
    var attached: [(node: SimNode, device: DeviceNumber, fence: UInt64)] = []
    /// The sequences whose rings were given up.
    var givenUp: Set<UInt64> = []
    /// The notifications that were to be stored for a connected device, by number.
    var kept: Set<UInt64> = []
    /// The processes that have begun so far.
    private(set) var incarnations: UInt64 = 0
    /// The sequences whose holder has answered, or which nobody held.
    var rung: Set<UInt64> = []
    /// The events so far, in words; nil unless somebody wants to read them.
    private(set) var trace: [String]?

    init(seed: UInt64, mutation: Mutation?, isTraced: Bool) {
        if isTraced { trace = [] }
        chance = SimChance(seed: seed)
        log = SimLog(scheduler: time, chance: chance)
        self.mutation = mutation
    }

    func nextIncarnation() -> UInt64 {
        incarnations += 1
        return incarnations
    }

    func note(_ words: @autoclosure () -> String) {
        if trace != nil { trace?.append("\(time.nanoseconds / 1000) \(words())") }
    }

    /// Lets everything go that holds itself: a test plays many histories.
    func end() {
        for (node, device, fence) in attached {
            node.postOffice.detach(device, fence: fence)
            node.rings.stop()
        }
        attached = []
        nodes = []
        time.end()
        log.end()
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
    let rings: NodeRings
    let messages: SimMessages
    let own: ClaimRecord
    private let reporter: NodeReporter
    private var registrationSequences: [DeviceNumber: UInt64] = [:]
    let following: SimFollowing
    let confirmations: RefusalConfirmations
    private(set) var isAlive = true
    private(set) var isReady = false
    /// Everything that the node does waits until then.
    var pausedUntil: Int64 = 0
    private var waiting: [@Sendable () -> Void] = []
    /// How many of ``waiting`` are requests that were read before everything else.
    private var early = 0

    init(index: Int, name: NodeName, world: SimWorld, skew: Duration) throws {
        self.index = index
        self.name = name
        self.world = world
        log = NodeLog(world, index)
        let clock = SkewedClock(world: world, skew: skew)
        let store = SimStore()
        guard let partitions = Partitions(count: 1) else { throw LogFailure.unavailable }
        own = ClaimRecord(node: name, incarnation: world.nextIncarnation())
        let context = ClusterContext(
            own: own,
            partitions: partitions,
            log: log,
            journal: store,
            clock: clock,
            scheduler: NodeTime(log, world.time),
            logger: Logger(label: "simulation") { _ in SwiftLogNoOpLogHandler() }
        )
        barriers = context.barriers
        mailbox = ClusterMailbox(context)
        store.mailbox = mailbox
        messages = SimMessages(log, world, name: name, index: index)
        rings = NodeRings(
            context,
            messages: messages,
            mailbox: mailbox,
            nodes: SimLiveNodes(world: world, name: name)
        ) { [log] device, done in
            log.node?.catchUp(device, done)
        } onEnd: { sequence, isAnswered in
            world.note("\(name.text) has rung for \(sequence): \(isAnswered ? "answered" : "given up")")
            // Nobody forgives a ring that was not repeated.
            if isAnswered {
                world.rung.insert(sequence)
            } else if world.mutation != .ringOnce {
                world.givenUp.insert(sequence)
            }
        }
        directory = ClusterDirectory(context, mailbox: mailbox, rings: rings)
        reporter = NodeReporter()
        var configuration = PostOfficeConfiguration()
        configuration.storesFirst = true
        configuration.shardCount = 1
        configuration.inFlightPerDevice = 2
        configuration.backgroundPerHour = 0
        let shared = SimSharedState()
        following = SimFollowing(log, world, barriers)
        confirmations = RefusalConfirmations(shared: shared, clock: clock)
        postOffice = PostOffice(
            configuration: configuration,
            clock: clock,
            store: store,
            directory: SimDirectory(directory, reporter),
            confirmations: confirmations,
            logger: Logger(label: "simulation") { _ in SwiftLogNoOpLogHandler() }
        )
        store.node = self
        shared.node = self
        log.node = self
        reporter.node = self
        mailbox.report(to: reporter)
        directory.serve(self)
    }

    func start() {
        following.start()
        begin()
    }

    private func begin() {
        mailbox.start { [self] result in
            guard case .success = result else { return begin() }
            rings.start { [self] result in
                if case .success = result { isReady = true } else { begin() }
            }
        }
    }

    /// The process dies: nothing that was on its way comes back to it.
    func crash() {
        isAlive = false
        rings.stop()
        following.cancel()
    }

    /// Runs work of the node, later if it is paused, and never if it has died.
    ///
    /// A request comes on a connection of its own: after a pause it may be read before what came earlier on others.
    func enter(isRequest: Bool = false, _ work: @escaping @Sendable () -> Void) {
        guard isAlive else { return }
        guard pausedUntil > world.time.nanoseconds || !waiting.isEmpty else { return work() }
        if isRequest, pausedUntil > world.time.nanoseconds, world.chance.below(2) == 0 {
            waiting.insert(work, at: early)
            early += 1
        } else {
            waiting.append(work)
        }
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
            early = 0
        }
    }

    // MARK: - What the log says

    func followed(_ entries: [LogEntry]) {
        for entry in entries {
            if let record = SimRegistration(entry.payload) { apply(record, entry.sequence) }
        }
    }

    /// Reads the registrations of a device behind a barrier.
    func catchUp(_ device: DeviceNumber, _ done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        let subject = LogSubject.registrations(device, world.partition)
        barriers.read([subject], in: .registrations(world.partition)) { [self] result in
            if let entries = try? result.get() { followed(entries) }
            done(result.map { _ in }.mapError { $0 as any Error })
        }
    }

    /// The log's sequence of what the post office removes.
    func truth(_ sequence: UInt64) -> UInt64 { reporter.truth(sequence) }

    func masked(_ found: [StoredNotification]) -> [StoredNotification] { found.map(reporter.masked) }

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
        guard let node else { return done(.success(())) }
        guard case .registrations(let device) = part else {
            return node.following.keys.catchUp { done($0.mapError { $0 as any Error }) }
        }
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
        default: node.following.registrations.catchUp { done($0.mapError { $0 as any Error }) }
        }
    }

    func isBehind(_ part: SharedPart) -> Bool {
        guard let node, case .registrations = part, node.world.mutation != .acceptsWhenBehind else { return false }
        return node.following.freshness.isOver(at: node.world.time.now)
    }
}

// MARK: - Connections

extension SimNode: ConnectionHolder {
    /// Other nodes have rung.
    func heard(_ rings: ByteBuffer, from sender: NodeName) {
        guard let rings = try? RingRecord(rings) else { return }
        for ring in rings.notifications {
            world.note("\(name.text) is rung by \(sender.text) for \(ring.sequence)")
            let device = ring.notification.slot.device
            guard world.mutation == .ringsUpToTheClaim, mailbox.fence(of: device) != nil else { continue }
            _ = storedElsewhere(ring.stored) { true }
        }
    }

    func storedElsewhere(_ stored: StoredNotification, isNews: () -> Bool) -> Bool {
        postOffice.storedElsewhere(reporter.masked(stored), isNews: isNews)
    }

    func deliverOnce(_ envelope: Envelope) -> PassedDelivery { postOffice.deliverOnce(envelope) }

    func letGo(_ device: DeviceNumber, fence: UInt64) { postOffice.letGo(device, fence: fence) }
}

extension NodeRings {
    /// ``start()`` with a callback; `done` is called once, from any thread, when all present claims are known.
    func start(_ done: @escaping LogFollower.Done) { start(followers[...], done) }

    private func start(_ left: ArraySlice<LogFollower>, _ done: @escaping LogFollower.Done) {
        guard let follower = left.first else { return done(.success(())) }
        follower.start { [self] result in
            if case .failure = result { done(result) } else { start(left.dropFirst(), done) }
        }
    }
}
