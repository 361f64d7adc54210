import HeraldCluster
import HeraldMailbox
import HeraldModel
import NIOCore

/// The number of a token key, which stands for the key in the simulation.
typealias SimKey = UInt32

/// The followers of a simulated node: of the registrations, and of the token keys.
///
/// Unchecked: one thread runs the whole simulation.
final class SimFollowing: @unchecked Sendable {
    let registrations: LogFollower
    let keys: LogFollower
    /// That of the registrations.
    let freshness = Freshness()
    /// The newest key that the node has.
    fileprivate(set) var newestKey: SimKey = 1

    init(_ log: NodeLog, _ world: SimWorld, _ barriers: LogBarriers) {
        let scheduler = NodeTime(log, world.time)
        registrations = LogFollower(
            .registrations(world.partition),
            log: log,
            barriers: barriers,
            scheduler: scheduler,
            freshness: freshness
        ) { [log] in log.node?.followed($0) }
        keys = LogFollower(.trust, log: log, barriers: barriers, scheduler: scheduler) { [log] entries in
            for entry in entries {
                guard let key = entry.payload.getInteger(at: entry.payload.readerIndex, as: SimKey.self) else {
                    continue
                }
                guard let following = log.node?.following else { continue }
                following.newestKey = max(following.newestKey, key)
            }
        }
    }

    func start() {
        registrations.start { _ in }
        keys.start { _ in }
    }

    func cancel() {
        registrations.cancel()
        keys.cancel()
    }
}

extension SimNode {
    /// Posts a notification with a token under a key, as the gateway does; `refused` hears a refusal that comes at once.
    func post(_ envelope: Envelope, under key: SimKey, _ refused: @escaping @Sendable (RefusalReason) -> Void) {
        guard key > following.newestKey else { return post(envelope, refused) }
        guard world.mutation != .refusesUnknownSeals else { return refused(.badDeviceToken) }
        let isUnderWay = confirmations.confirm(.trust) { [self] isCaughtUp in
            if isCaughtUp, key <= following.newestKey {
                post(envelope) { envelope.completion?.settle(.refused($0)) }
            } else {
                envelope.completion?.settle(.refused(isCaughtUp ? .badDeviceToken : .serviceUnavailable))
            }
        }
        if !isUnderWay { refused(.serviceUnavailable) }
    }
}

/// Nodes that stand still, or hear nothing, while apps are installed anew and keys are rotated at the others.
extension SimCluster {
    /// Makes a token key; it seals at once, because nodes that are out of touch count as gone.
    func rotate() {
        let world = world
        world.lastKey += 1
        let key = world.lastKey
        let message = LogMessage(.trust("keys.ring"), payload: ByteBuffer(integer: key))
        world.log.appendSurely(message, to: .trust) { [self] _ in seal(under: key) }
    }

    /// Seals under a key once every node in touch has it.
    private func seal(under key: SimKey) {
        let isReady = world.nodes.allSatisfy { node in
            isOutOfTouch(node) || !node.isReady || node.following.newestKey >= key
        }
        guard !isReady else {
            world.sealingKey = max(world.sealingKey, key)
            return
        }
        world.time.run(after: .milliseconds(20)) { [self] in seal(under: key) }
    }

    private func isOutOfTouch(_ node: SimNode) -> Bool {
        world.cutOff.contains(node.index) || node.pausedUntil > world.time.nanoseconds
    }

    /// Lets a node stand still, or hear nothing, for longer than it may be behind, and posts to it when that ends.
    func standStill() {
        let node = world.nodes[random.below(world.nodes.count)]
        let others = world.nodes.filter { $0 !== node && $0.isReady && !isOutOfTouch($0) }
        guard let other = others.first, node.isReady, !isOutOfTouch(node) else { return }
        let time = Duration.milliseconds(5_100 + random.below(3_000))
        let isCut = random.oneIn(2)
        if isCut {
            world.cutOff.insert(node.index)
        } else {
            node.pausedUntil = world.time.nanoseconds + TimeAmount(time).nanoseconds
        }
        let device = devices[random.below(devices.count)]
        reinstall(device, at: other)
        if random.oneIn(2) { rotate() }
        world.time.pass(time - .milliseconds(5))
        if isCut { world.cutOff.remove(node.index) }
        for _ in 0..<3 { post(to: device, at: node) }
        world.time.pass(.milliseconds(10))
    }
}

extension SimOracle {
    /// Posts that were accepted although their token had ended long before they were sent.
    func acceptedDead() -> [String] {
        let bound = TimeAmount(ClusterLimits.followerFreshness).nanoseconds
        return cluster.posts.enumerated().compactMap { number, post in
            guard post.answer == .accepted, let ended = cluster.ends(post.slot), post.sent > ended + bound else {
                return nil
            }
            return "\(number) was accepted although its token had ended \((post.sent - ended) / 1_000_000) ms before"
        }
    }
}
