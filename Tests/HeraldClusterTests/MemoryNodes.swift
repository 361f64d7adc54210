import HeraldCluster
import NIOCore
import Synchronization

/// The messages between nodes of one test, in memory; a test may lose some.
final class MemoryNodes: Sendable {
    private struct State {
        var nodes: [NodeName: NodeExchange] = [:]
        var loses: (@Sendable (NodeExchange.Address, NodeName) -> Bool)?
    }

    private let state = Mutex(State())
    private let scheduler: any ClusterScheduler

    init(scheduler: any ClusterScheduler) {
        self.scheduler = scheduler
    }

    /// Adds a node.
    func join(_ node: NodeName) -> NodeExchange {
        let exchange = NodeExchange(node: node, scheduler: scheduler) { [weak self] bytes, address, receiver in
            self?.carry(bytes, address, receiver)
        }
        state.withLock { $0.nodes[node] = exchange }
        return exchange
    }

    /// Loses the messages to a node for which a test says so.
    func lose(_ loses: (@Sendable (NodeExchange.Address, NodeName) -> Bool)?) { state.withLock { $0.loses = loses } }

    private func carry(_ bytes: ByteBuffer, _ address: NodeExchange.Address, _ receiver: NodeName?) {
        let (nodes, loses) = state.withLock { ($0.nodes, $0.loses) }
        for (name, exchange) in nodes where receiver ?? name == name && loses?(address, name) != true {
            scheduler.run(after: .zero) { exchange.received(bytes, at: address, isForAll: receiver == nil) }
        }
    }
}
