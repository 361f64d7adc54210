import HeraldCluster
import HeraldMailbox
import HeraldModel
import Synchronization

/// A device, as the simulation plays it.
///
/// Unchecked: one thread runs the whole simulation.
final class SimDevice: @unchecked Sendable {
    let number: DeviceNumber
    let world: SimWorld
    /// The generation of each app's newest token that the device was given.
    var generations: [UInt32]
    /// The generation of each app whose registration has begun.
    var begun: [UInt32]
    /// When the generations before the newest of each app were known to have ended.
    private(set) var ended: [[UInt32: Int64]]
    var isSavingPower = false
    /// Whether it acknowledges nothing.
    var isStalled = false
    private(set) var link: SimLink?
    private var attempt = 0
    /// The notifications that it showed, by app and generation, in order.
    private(set) var shown: [RegisteredSlot: [UInt64]] = [:]
    private var unacknowledged: [Delivery] = []

    init(_ number: UInt64, apps: Int, world: SimWorld) {
        self.number = DeviceNumber(number)
        self.world = world
        generations = Array(repeating: 1, count: apps)
        begun = generations
        ended = generations.map { _ in [:] }
    }

    var isConnected: Bool { link != nil }

    func slot(_ app: Int) -> Slot { Slot(device: number, app: AppNumber(UInt32(app + 1))) }

    /// Connects to a node; what it was connected to may or may not notice.
    func connect(to node: SimNode) {
        disconnect(isNoticed: world.chance.below(2) == 0)
        attempt += 1
        let mine = attempt
        node.enter { [self] in
            guard node.isReady else { return }
            node.directory.claim(number, for: client(of: mine, since: world.time.nanoseconds)) { [self] result in
                guard case .success(let fence) = result else { return }
                node.enter { [self] in attach(node, fence: fence, attempt: mine) }
            }
        }
    }

    /// The client of a CONNECT, whose end the node hears of in most cases.
    private func client(of mine: Int, since moment: Int64) -> ClientCheck {
        let isHeard = !world.chance.fails(oneIn: 3)
        return { [self] done in
            done(isHeard && mine != attempt ? nil : .nanoseconds(world.time.nanoseconds - moment))
        }
    }

    private func attach(_ node: SimNode, fence: UInt64, attempt mine: Int) {
        guard mine == attempt, node.isAlive else { return node.directory.release(number, fence: fence) }
        let link = SimLink(self, node, fence: fence)
        self.link = link
        world.note("device \(number.value) is at \(node.name.text) by \(fence), saving \(isSavingPower)")
        world.attached.append((node, number, fence))
        node.postOffice.attach(number, link: link, isSavingPower: isSavingPower, fence: fence)
        let apps = generations.indices.map { AppSubscription(slot($0).app, qualityOfService: 1) }
        node.postOffice.open(apps, on: number, fence: fence)
    }

    func disconnect(isNoticed: Bool) {
        guard let link else { return }
        attempt += 1
        self.link = nil
        unacknowledged = []
        guard isNoticed else { return }
        let (node, fence) = (link.node, link.fence)
        node.enter { [self] in
            node.postOffice.detach(number, fence: fence)
        }
    }

    /// The node has closed the connection.
    func dismissed(_ link: SimLink) {
        if self.link === link { disconnect(isNoticed: true) }
    }

    func receive(_ delivery: Delivery, on link: SimLink) {
        world.note("device \(number.value) gets \(delivery.envelope.notification.id.low), stalled \(isStalled)")
        guard self.link === link else { return }
        let notification = delivery.envelope.notification
        let slot = RegisteredSlot(notification.slot, generation: delivery.envelope.generation)
        shown[slot, default: []].append(notification.id.low)
        if isStalled { unacknowledged.append(delivery) } else { acknowledge(delivery, on: link) }
    }

    private func acknowledge(_ delivery: Delivery, on link: SimLink) {
        world.time.run(after: .microseconds(200 + world.chance.below(3_000))) { [self] in
            guard self.link === link else { return }
            let slot = delivery.envelope.notification.slot
            link.node.enter { [self] in
                let number = delivery.number
                world.note("device \(self.number.value) acknowledges \(delivery.envelope.notification.id.low)")
                link.node.postOffice.finished(slot, fence: link.fence, delivery: number, result: .acknowledged)
            }
        }
    }

    func setStalled(_ isStalled: Bool) {
        self.isStalled = isStalled
        guard !isStalled, let link else { return }
        for delivery in unacknowledged { acknowledge(delivery, on: link) }
        unacknowledged = []
    }

    func setSavingPower(_ isSaving: Bool) {
        isSavingPower = isSaving
        guard let link else { return }
        world.note("device \(number.value) saves: \(isSaving)")
        link.node.enter { [number] in
            link.node.postOffice.setSavingPower(isSaving, device: number, fence: link.fence)
        }
    }

    /// Installs an app anew, through a node: its former token is dead, and it gets a new one.
    func reinstall(_ app: Int, at node: SimNode, _ done: @escaping @Sendable () -> Void) {
        guard begun == generations else { return }
        begun[app] += 1
        let record = SimRegistration(device: number, generations: begun)
        register(record, at: node) { [self] in
            ended[app][generations[app]] = world.time.nanoseconds
            generations = begun
            done()
        }
    }

    func register(_ record: SimRegistration, at node: SimNode, _ done: @escaping @Sendable () -> Void) {
        let subject = LogSubject.registrations(number, world.partition)
        let message = LogMessage(subject, payload: record.payload)
        world.log.appendSurely(message, to: .registrations(world.partition)) { sequence in
            if let sequence { node.enter { node.apply(record, sequence) } }
            done()
        }
    }
}

/// A device's connection to a node.
///
/// Unchecked: one thread runs the whole simulation.
final class SimLink: DeviceLink, @unchecked Sendable {
    let device: SimDevice
    let node: SimNode
    let fence: UInt64

    init(_ device: SimDevice, _ node: SimNode, fence: UInt64) {
        self.device = device
        self.node = node
        self.fence = fence
    }

    func deliver(_ delivery: Delivery) {
        device.world.time.run(after: .microseconds(300)) { [self] in device.receive(delivery, on: self) }
    }

    func dismiss(_ reason: DismissalReason) {
        device.world.time.run(after: .microseconds(300)) { [self] in device.dismissed(self) }
    }
}
