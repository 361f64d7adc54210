import HeraldCluster
import HeraldMailbox
import HeraldModel

/// A mistake about older connections that the simulation must find.
enum FenceMutation: String, CaseIterable {
    /// A CONNECT claims the device although its client has gone.
    case noClientCheck
    /// The time that a CONNECT has waited counts for nothing.
    case noPatience
    /// A claim does not name the one that it replaces.
    case unconditionalClaim
    /// A connection that begins does not stamp the registrations.
    case noStamp
    /// A change does not look at the fence.
    case noFence
}

/// A device that moves between nodes that stand still or are cut off, and asks for changes of its registration.
///
/// The nodes have their real directories and records on a simulated log. What the newest connection was told must stay true, and
/// no older CONNECT may end it. Unchecked: one thread runs the whole simulation.
final class SimFences: @unchecked Sendable {
    /// A connection of the device, or its attempt.
    private final class Connection: DeviceLink, @unchecked Sendable {
        let number: Int
        let node: SimNode
        let begun: Int64
        unowned let world: SimFences
        var fence: UInt64?
        /// Whether its node hears that the client has gone.
        var isGone = false

        init(_ number: Int, _ node: SimNode, _ world: SimFences) {
            self.number = number
            self.node = node
            self.world = world
            begun = world.world.time.nanoseconds
        }

        func deliver(_ delivery: Delivery) {}
        func dismiss(_ reason: DismissalReason) { world.dismissed(self) }
    }

    private let world: SimWorld
    private let mutation: FenceMutation?
    private var random: SeededGenerator
    private let slot = Slot(device: DeviceNumber(1), app: AppNumber(1))
    /// Not the stream of the other simulation, whose records have another form.
    private let stream = LogStream.registrations(Partition(1))
    private let subject = LogSubject.registrations(DeviceNumber(1), Partition(1))
    private var changes: [RecordChanges] = []
    private var known: [Versioned<DeviceRegistrations>] = []
    private var newest: Connection?
    /// The registration as the newest connection was told; nil while a request of it is open, or after one that failed.
    private var told: Registration??
    private var violations: [String] = []

    init(seed: UInt64, _ mutation: FenceMutation?) throws {
        world = SimWorld(seed: seed, mutation: nil, isTraced: false)
        world.claimsAreUnconditional = mutation == .unconditionalClaim
        self.mutation = mutation
        random = SeededGenerator(state: seed &* 37 &+ 11)
        for (index, name) in ["a", "b", "c"].enumerated() {
            guard let name = NodeName(name) else { throw LogFailure.unavailable }
            let node = try SimNode(index: index, name: name, world: world, skew: .zero)
            world.nodes.append(node)
            changes.append(RecordChanges(log: node.log, barriers: node.barriers))
            known.append(Versioned())
        }
    }

    /// Plays a history, and returns what was wrong with it.
    func play(steps: Int) -> [String] {
        for node in world.nodes { node.start() }
        world.time.pass(.milliseconds(300))
        for _ in 0..<steps {
            step()
            world.time.pass(random.oneIn(8) ? .milliseconds(random.below(4_000)) : .microseconds(random.below(20_000)))
        }
        world.chance.setCalm(true)
        world.cutOff = []
        for node in world.nodes { node.pausedUntil = 0 }
        world.time.pass(.seconds(15))
        if newest?.fence == nil {
            connect(to: world.nodes[0])
            world.time.pass(.seconds(5))
        }
        if newest?.fence == nil { violations.append("the device cannot connect") }
        // Without a registration it has no token, and does not mind one that nobody was told of.
        if let told = told ?? nil {
            let last = world.log.stream(stream).records[subject]?.last
            let record = last.flatMap { try? DeviceRegistrations($0.payload) }
            let present = record?.registration(of: slot.app)
            if present != told { violations.append("the registration is not as the device was told") }
        }
        world.end()
        return violations
    }

    private func step() {
        let node = world.nodes[random.below(3)]
        switch random.below(10) {
        case 0...2: connect(to: node)
        case 3...6: request()
        case 7: (newest?.node ?? node).pausedUntil = world.time.nanoseconds + Int64(random.below(6_000)) * 1_000_000
        case 8: node.pausedUntil = world.time.nanoseconds + Int64(random.below(6_000)) * 1_000_000
        default: if world.cutOff.remove(node.index) == nil { world.cutOff.insert(node.index) }
        }
    }

    private func connect(to node: SimNode) {
        if let former = newest {
            let hasWaited = world.time.nanoseconds - former.begun >= 2_000_000_000
            // A client that gives up at once says so; one that has lost its network does not.
            former.isGone = former.fence == nil && !hasWaited || random.oneIn(2)
        }
        let connection = Connection((newest?.number ?? 0) + 1, node, self)
        newest = connection
        told = nil
        let client: ClientCheck = { [self] done in
            let silence = Duration.nanoseconds(world.time.nanoseconds - connection.begun)
            switch mutation {
            case .noClientCheck: done(.zero)
            case .noPatience: done(connection.isGone ? nil : .zero)
            default: done(connection.isGone || silence > .seconds(10) ? nil : silence)
            }
        }
        node.enter { [self] in
            guard node.isReady else { return }
            node.directory.claim(slot.device, for: client) { [self] result in
                if case .success(let fence) = result { begin(connection, fence) }
            }
        }
    }

    private func begin(_ connection: Connection, _ fence: UInt64) {
        change(connection, fence: fence, isBeginning: true) { _ in
        } _: { [self] result in
            guard case .success(let registration) = result, connection === newest else { return }
            connection.fence = fence
            told = .some(registration)
            world.attached.append((connection.node, slot.device, fence))
            connection.node.postOffice.attach(slot.device, link: connection, isSavingPower: false, fence: fence)
        }
    }

    private func request() {
        guard let connection = newest, let fence = connection.fence else { return }
        told = nil
        let (kind, app, moment) = (random.below(4), slot.app, WallTime(milliseconds: Int64(random.below(1 << 30))))
        connection.node.enter { [self] in
            change(connection, fence: fence) { registrations in
                switch kind {
                case 0: registrations.unregister(app, at: moment)
                case 1: registrations.setEnabled(false, app)
                default: _ = registrations.register(app, at: moment)
                }
            } _: { [self] result in
                if case .success(let registration) = result, connection === newest { told = .some(registration) }
            }
        }
    }

    private func change(
        _ connection: Connection,
        fence: UInt64,
        isBeginning: Bool = false,
        _ edit: @escaping @Sendable (inout DeviceRegistrations) -> Void,
        _ done: @escaping @Sendable (Result<Registration?, any Error>) -> Void
    ) {
        let (index, app, mutation) = (connection.node.index, slot.app, mutation)
        changes[index].change(subject, in: stream, from: known[index]) { [slot] record in
            var registrations = record ?? DeviceRegistrations(slot.device)
            if mutation == .noFence {
                try? registrations.take(by: fence)
            } else if !isBeginning || mutation != .noStamp {
                try registrations.take(by: fence)
            }
            edit(&registrations)
            record = record == nil && registrations.isEmpty ? nil : registrations
            return registrations.registration(of: app)
        } _: { [self] result in
            if let changed = try? result.get().0, changed.sequence > known[index].sequence { known[index] = changed }
            done(result.map(\.1))
        }
    }

    private func dismissed(_ connection: Connection) {
        if connection === newest { violations.append("the newest connection was ended by an older CONNECT") }
    }
}
