import HeraldCluster
import HeraldMailbox
import HeraldModel
import NIOCore

/// The messages of a simulated node to the others.
final class SimMessages: NodeMessages {
    private let log: NodeLog
    private let exchange: NodeExchange

    init(_ log: NodeLog, _ world: SimWorld, name: NodeName, index: Int) {
        self.log = log
        exchange = NodeExchange(node: name, scheduler: NodeTime(log, world.time)) { bytes, address, receiver in
            guard log.node?.isAlive ?? false else { return }
            if world.mutation == .ringOnce, receiver == nil { return }
            for (to, node) in world.nodes.enumerated() where receiver ?? node.name == node.name {
                // What goes to all is a repetition.
                world.send(from: index, to: to, isRepetition: receiver == nil) { node in
                    node.messages.exchange.received(bytes, at: address, isForAll: receiver == nil)
                }
            }
        }
    }

    func send(_ payload: ByteBuffer, as kind: NodeMessageKind, to node: NodeName) {
        exchange.send(payload, as: kind, to: node)
    }

    func sendToAll(_ payload: ByteBuffer, as kind: NodeMessageKind) { exchange.sendToAll(payload, as: kind) }

    func ask(
        _ payload: ByteBuffer,
        as kind: NodeMessageKind,
        of nodes: Set<NodeName>,
        within time: Duration,
        _ done: @escaping @Sendable ([NodeName: ByteBuffer]) -> Void
    ) {
        exchange.ask(payload, as: kind, of: nodes, within: time, done)
    }

    func receive(_ kind: NodeMessageKind, _ body: @escaping NodeMessageReceiver) {
        exchange.receive(kind) { [log] payload, sender, reply in
            if kind == .ring { log.node?.heard(payload, from: sender) }
            body(payload, sender, reply)
        }
    }
}

/// The nodes of the simulation: a process that has begun again is another one.
struct SimLiveNodes: LiveNodes {
    let world: SimWorld
    let name: NodeName

    var others: Set<NodeName> { Set(world.nodes.map(\.name)).subtracting([name]) }

    func mayLive(_ holder: ClaimRecord) -> Bool { world.nodes.contains { $0.own == holder } }
}

/// The directory of a node as its post office knows it, whose sequences a mutation replaces.
final class SimDirectory: ConnectionDirectory {
    private let directory: ClusterDirectory
    private let reporter: NodeReporter

    init(_ directory: ClusterDirectory, _ reporter: NodeReporter) {
        self.directory = directory
        self.reporter = reporter
    }

    func notifyHolders(of puts: [StoredPut]) {
        directory.notifyHolders(
            of: puts.map { put in
                StoredPut(
                    envelope: put.envelope,
                    sequence: reporter.truth(put.sequence),
                    tag: put.tag,
                    isReplaced: put.isReplaced
                )
            }
        )
    }

    func serve(_ holder: any ConnectionHolder) { directory.serve(holder) }

    func claim(
        _ device: DeviceNumber,
        for client: @escaping ClientCheck,
        _ done: @escaping @Sendable (Result<UInt64, any Error>) -> Void
    ) {
        directory.claim(device, for: client, done)
    }

    func release(_ device: DeviceNumber, fence: UInt64) { directory.release(device, fence: fence) }
    func holds(_ device: DeviceNumber, fence: UInt64) -> Bool { directory.holds(device, fence: fence) }
    func isHeldElsewhere(_ device: DeviceNumber) -> Bool { directory.isHeldElsewhere(device) }

    func passOn(_ envelope: Envelope, _ done: @escaping @Sendable (_ isTaken: Bool) -> Void) {
        directory.passOn(envelope, done)
    }
}
