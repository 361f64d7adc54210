import CoreMetrics
package import HeraldMailbox
package import HeraldModel
import NIOCore
import Synchronization

/// Rings for what this node has stored, and hears the rings and claims of the other nodes.
///
/// 1. A notification is stored; the node that probably holds its device is rung, and gets the notification with the ring.
/// 2. A claim that was stored before the notification, and comes after it, names another node, which is rung at once.
/// 3. When the claims up to the notification's sequence are known, it is certain who held the device then. The ring is over when
///    that node has answered, or if there was none: the next claim reads. ``RingBook`` asks for the claims that do not come by
///    themselves, repeats a ring that nobody answers, and at last gives it up.
///
/// A node that is rung delivers what is news to it (``HeldDevices``). A claim of another node that is newer than its own ends
/// a connection here.
package final class NodeRings: Sendable {
    /// Applies all changes of a device's registrations that were made before the call.
    package typealias CatchUp =
        @Sendable (
            _ device: DeviceNumber, _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
        ) -> Void

    /// Hears of the end of a ring: by its sequence, and whether it was answered, or there was nobody to answer.
    package typealias End = @Sendable (_ sequence: UInt64, _ isAnswered: Bool) -> Void

    private final class Share: Sendable {
        struct State {
            var claims = ClaimTable()
            var book: RingBook
            var isTicking = false
            var isCatchingUp = false

            mutating func settle(upTo position: UInt64, _ holders: Holders) -> RingBook.Decision {
                book.settle(upTo: position) { [claims] device, sequence in
                    holders.node(of: claims[device], before: sequence)
                }
            }
        }

        let partition: Partition
        let state: Mutex<State>

        init(_ partition: Partition, _ node: NodeName) {
            self.partition = partition
            state = Mutex(State(book: RingBook(node: node)))
        }
    }

    /// The post office, which has this node's directory and so is not retained.
    private final class HolderReference: Sendable {
        private struct Reference: Sendable {
            weak var holder: (any ConnectionHolder)?
        }

        private let reference = Mutex(Reference())

        var holder: (any ConnectionHolder)? {
            get { reference.withLock { $0.holder } }
            set { reference.withLock { $0.holder = newValue } }
        }
    }

    /// The nodes that hold devices, by their claims.
    private struct Holders: Sendable {
        let own: ClaimRecord
        let nodes: any LiveNodes

        /// The node that needs a ring for what was stored at a sequence, which may be this one.
        ///
        /// It is nil if nobody has claimed the device, or the claimant is gone, or has claimed it later and so reads it.
        func node(of claim: ClaimTable.Claim?, before sequence: UInt64) -> NodeName? {
            guard let claim, claim.sequence < sequence else { return nil }
            return claim.holder == own || nodes.mayLive(claim.holder) ? claim.holder.node : nil
        }
    }

    private let holders: Holders
    private let context: ClusterContext
    private let messages: any NodeMessages
    private let rings: RingMessages
    private let mailbox: ClusterMailbox
    private let catchUp: CatchUp
    private let onEnd: End?
    private let shares: [Share]
    package let followers: [LogFollower]
    private let reference = HolderReference()
    private let metrics: RingMetrics

    /// Makes the rings of a node.
    ///
    /// `catchUp` makes registrations known that other nodes have made. `onEnd` hears of the end of each ring.
    package init(
        _ context: ClusterContext,
        messages: any NodeMessages,
        mailbox: ClusterMailbox,
        nodes: any LiveNodes,
        catchUp: @escaping CatchUp,
        onEnd: End? = nil
    ) {
        let holders = Holders(own: context.own, nodes: nodes)
        self.holders = holders
        self.context = context
        self.messages = messages
        self.mailbox = mailbox
        self.catchUp = catchUp
        self.onEnd = onEnd
        let shares = context.partitions.all.map { Share($0, context.own.node) }
        let metrics = RingMetrics()
        self.metrics = metrics
        let rings = RingMessages(messages, scheduler: context.scheduler, metrics: metrics)
        self.rings = rings
        self.shares = shares
        followers = shares.map { [reference] share in
            LogFollower(
                .mailbox(share.partition),
                filters: [.claims(share.partition)],
                log: context.log,
                barriers: context.barriers,
                scheduler: context.scheduler
            ) { entries in
                let effects = NodeRings.apply(
                    entries,
                    in: context.scheduler.second,
                    to: share,
                    mailbox: mailbox,
                    holders: holders
                )
                for (device, fence) in effects.ended { reference.holder?.letGo(device, fence: fence) }
                if !effects.ended.isEmpty { metrics.takeovers.increment(by: effects.ended.count) }
                rings.send(effects.rings)
            }
        }
        messages.receive(.ring) { [weak self] payload, sender, _ in
            guard let rings = try? RingRecord(payload) else { return }
            self?.rung(rings.notifications, by: sender)
        }
        messages.receive(.rung) { [weak self] payload, sender, _ in
            guard let record = try? RungRecord(payload) else { return }
            self?.answered(record, by: sender)
        }
        messages.receive(.once) { [weak self] payload, _, reply in
            guard let self, let record = try? OnceRecord(payload) else { return }
            deliverOnce(record.notification) { reply(ByteBuffer(integer: UInt8($0 ? 1 : 0))) }
        }
    }

    /// Sets the holder of this node's connections.
    package func serve(_ holder: any ConnectionHolder) { reference.holder = holder }

    /// Begins to follow the claims, and waits until all present ones are known; after a failure it may be called again.
    /// - Throws: ``LogFailure`` if the log cannot be read or written.
    package func start() async throws {
        for follower in followers { try await follower.start() }
    }

    /// Ends the following.
    package func stop() {
        for follower in followers { follower.cancel() }
    }

    /// The number of devices that any node has claimed.
    package var claimCount: Int { shares.reduce(0) { $0 + $1.state.withLock { $0.claims.count } } }

    /// Sets the gauge of claims.
    package func measure() { metrics.claims.record(claimCount) }

    private func share(of device: DeviceNumber) -> Share { shares[context.partitions.partition(of: device).index] }

    // MARK: - Claims

    /// This node has claimed a device.
    /// - Returns: false if a newer claim is known already, also if it was released.
    package func claimed(_ device: DeviceNumber, fence: UInt64) -> Bool {
        // Under the lock, so that a newer claim is seen either here or when it is applied.
        let share = share(of: device)
        let (isNewest, older): (Bool, UInt64?) = share.state.withLock { state in
            let newest = state.claims[device]?.sequence
            // Where the log is known past the claim, another one that was released since may have replaced it.
            let isKnown = followers[share.partition.index].position >= fence
            guard !isKnown || newest == fence else { return (false, nil) }
            return mailbox.at(device) { partition in
                let older = partition.held.fence(of: device)
                let isNewest = partition.claimed(device, fence: fence, newest: newest)
                return (isNewest, isNewest ? older : nil)
            }
        }
        // The connection of this claim may be gone already, and would end no older one.
        if let older { reference.holder?.letGo(device, fence: older) }
        return isNewest
    }

    private struct ClaimEffects {
        /// The connections of this node that the claims end.
        var ended: [(device: DeviceNumber, fence: UInt64)] = []
        var rings: [RingBook.Order] = []
    }

    private static func apply(
        _ entries: [LogEntry],
        in second: UInt32,
        to share: Share,
        mailbox: ClusterMailbox,
        holders: Holders
    ) -> ClaimEffects {
        share.state.withLock { state in
            var effects = ClaimEffects()
            for entry in entries {
                guard let device = state.claims.apply(entry, in: second) else { continue }
                if let fence = mailbox.at(device, { $0.saw(claim: entry.sequence, of: device) }) {
                    effects.ended.append((device, fence))
                }
                let claim = state.claims[device]
                effects.rings += state.book.claimed(device) { holders.node(of: claim, before: $0) }
            }
            return effects
        }
    }

    /// The newest claim of a device that this node knows.
    func newestClaim(of device: DeviceNumber) -> ClaimTable.Claim? {
        share(of: device).state.withLock { $0.claims[device] }
    }

    /// Whether this node has heard of a claim within a time, or a second more, and another node that lives has made it.
    func isNews(_ claim: ClaimTable.Claim, within time: Duration) -> Bool {
        .seconds(Int64(context.scheduler.second &- claim.heard)) <= time + .seconds(1) && isElsewhere(claim)
    }

    /// The other node that holds a device, if it lives.
    func otherHolder(of device: DeviceNumber) -> NodeName? {
        newestClaim(of: device).flatMap { isElsewhere($0) ? $0.holder.node : nil }
    }

    private func isElsewhere(_ claim: ClaimTable.Claim) -> Bool {
        claim.holder != holders.own && holders.nodes.mayLive(claim.holder)
    }

    // MARK: - Rings of this node

    /// This node has stored notifications.
    func stored(_ puts: [StoredPut]) {
        let now = context.scheduler.now
        var orders: [RingBook.Order] = []
        for put in puts where !put.isReplaced {
            let notification = PassedNotification(put.envelope, sequence: put.sequence)
            let share = share(of: notification.slot.device)
            let (order, begins) = share.state.withLock { state in
                let hint = holders.node(of: state.claims[notification.slot.device], before: put.sequence)
                let order = state.book.stored(notification, hint: hint, at: now)
                defer { state.isTicking = true }
                return (order, !state.isTicking)
            }
            if let order { orders.append(order) }
            if begins { context.scheduler.run(after: ClusterLimits.ringTick) { [weak self] in self?.tick(share) } }
        }
        rings.send(orders)
    }

    /// Looks after the rings of a partition until all are over.
    private func tick(_ share: Share) {
        settle(share)
        let (decision, goesOn, catchesUp) = share.state.withLock { state in
            let decision = state.book.overdue(at: context.scheduler.now)
            let catchesUp = decision.wantsClaims && !state.isCatchingUp
            if catchesUp { state.isCatchingUp = true }
            state.isTicking = !state.book.isEmpty
            return (decision, state.isTicking, catchesUp)
        }
        perform(decision)
        if catchesUp {
            followers[share.partition.index].catchUp { [weak self] _ in
                share.state.withLock { $0.isCatchingUp = false }
                self?.settle(share)
            }
        }
        if goesOn { context.scheduler.run(after: ClusterLimits.ringTick) { [weak self] in self?.tick(share) } }
    }

    /// Tells the rings whose claims are known by now who held the device.
    private func settle(_ share: Share) {
        let position = followers[share.partition.index].position
        perform(share.state.withLock { $0.settle(upTo: position, holders) })
    }

    private func perform(_ decision: RingBook.Decision) {
        rings.send(decision.orders)
        if !decision.givenUp.isEmpty { metrics.givenUp.increment(by: decision.givenUp.count) }
        guard let onEnd else { return }
        for sequence in decision.answered { onEnd(sequence, true) }
        for sequence in decision.givenUp { onEnd(sequence, false) }
    }

    private func answered(_ record: RungRecord, by node: NodeName) {
        let now = context.scheduler.now
        for place in record.places where shares.indices.contains(place.partition.index) {
            let isOver = shares[place.partition.index].state.withLock {
                $0.book.answered(place.sequence, by: node, at: now)
            }
            if isOver { onEnd?(place.sequence, true) }
        }
        metrics.answered.increment(by: record.places.count)
    }

    // MARK: - Rings of other nodes

    /// Another node has stored notifications.
    private func rung(_ notifications: [PassedNotification], by sender: NodeName) {
        var places: [RungRecord.Place] = []
        places.reserveCapacity(notifications.count)
        for passed in notifications {
            if deliver(passed) {
                places.append(place(passed))
            } else {
                // The registration is new, or it has ended: its notification is never shown then.
                catchUp(passed.slot.device) { [self] result in
                    guard case .success = result else { return }
                    _ = deliver(passed)
                    rings.answer([place(passed)], to: sender)
                }
            }
        }
        rings.answer(places, to: sender)
    }

    /// Delivers a notification that another node has stored, if it is news for a connection here.
    ///
    /// The connection asks under its own lock, under which it also begins its reads: a read that begins between the answer and
    /// the delivery could find a newer notification, which must not be followed by this one.
    /// - Returns: false if its registration is not known here.
    private func deliver(_ passed: PassedNotification) -> Bool {
        let isNews = { [mailbox] in mailbox.at(passed.slot.device) { $0.rung(passed.sequence, of: passed.slot) } }
        guard let holder = reference.holder else {
            _ = isNews()
            return true
        }
        return holder.storedElsewhere(passed.stored, isNews: isNews)
    }

    private func place(_ passed: PassedNotification) -> RungRecord.Place {
        RungRecord.Place(partition: context.partitions.partition(of: passed.slot.device), sequence: passed.sequence)
    }

    // MARK: - Notifications without storage

    /// Passes a notification that is never stored to the node of its device.
    func passOn(_ envelope: Envelope, _ done: @escaping @Sendable (Bool) -> Void) {
        let device = envelope.notification.slot.device
        let receivers: Set<NodeName>
        if followers[context.partitions.partition(of: device).index].lag > ClusterLimits.staleClaims {
            receivers = holders.nodes.others
        } else {
            receivers = Set([otherHolder(of: device)].compactMap(\.self))
        }
        guard !receivers.isEmpty else { return context.scheduler.run(after: .zero) { done(false) } }
        metrics.passed.increment(by: receivers.count)
        let body = OnceRecord(PassedNotification(envelope)).body
        messages.ask(body, as: .once, of: receivers, within: ClusterLimits.passOnTime) { answers in
            done(answers.values.contains { $0.getInteger(at: $0.readerIndex, as: UInt8.self) == 1 })
        }
    }

    /// Delivers a notification on behalf of another node.
    private func deliverOnce(_ passed: PassedNotification, _ done: @escaping @Sendable (Bool) -> Void) {
        let envelope = Envelope(passed.notification, generation: passed.generation)
        switch reference.holder?.deliverOnce(envelope) {
        case .taken: done(true)
        case .notHere, nil: done(false)
        case .unknownRegistration:
            catchUp(passed.slot.device) { [self] _ in done(reference.holder?.deliverOnce(envelope) == .taken) }
        }
    }
}
