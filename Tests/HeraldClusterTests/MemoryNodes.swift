import HeraldCluster
import NIOCore
import Synchronization

/// The messages between nodes of one test, in memory; a test may lose some.
final class MemoryNodes: Sendable {
    private struct State {
        var nodes: [NodeName: NodeExchange] = [:]
        var loses: (@Sendable (NodeExchange.Address, NodeName) -> Bool)?
        var counts: [NodeExchange.Address: Int] = [:]
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

    /// The messages of each kind since ``count()``.
    var counts: [NodeExchange.Address: Int] { state.withLock { $0.counts } }

    /// Counts from 0.
    func count() { state.withLock { $0.counts = [:] } }

    private func carry(_ bytes: ByteBuffer, _ address: NodeExchange.Address, _ receiver: NodeName?) {
        let (nodes, loses) = state.withLock { state in
            state.counts[address, default: 0] += 1
            return (state.nodes, state.loses)
        }
        for (name, exchange) in nodes where receiver ?? name == name && loses?(address, name) != true {
            scheduler.run(after: .zero) { exchange.received(bytes, at: address, isForAll: receiver == nil) }
        }
    }
}
