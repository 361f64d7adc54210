package import HeraldNATS
import NIOCore

/// Messages between nodes over core NATS: `hrld.node.<name>.<kind>` to a node, and `hrld.nodes.<kind>` to all.
package final class NATSNodeMessages: Sendable {
    /// The messages of this node.
    package let exchange: NodeExchange
    private let connection: NATSConnection
    private let subscriptions: [NATSConnection.Subscription]

    /// Subscribes to the messages for a node.
    /// - Throws: If the connection takes no more subscriptions.
    package init(_ connection: NATSConnection, node: NodeName) throws(NATSError) {
        self.connection = connection
        let exchange = NodeExchange(node: node, scheduler: EventLoopScheduler(connection.eventLoop)) {
            [weak connection] bytes, address, node in
            let place = node.map { "hrld.node.\($0.text)" } ?? "hrld.nodes"
            // Without a connection it is lost, as it may be on its way.
            try? connection?.publish(bytes, to: "\(place).\(address.text)")
        }
        self.exchange = exchange
        let subscribe = { (place: String, isForAll: Bool) throws(NATSError) in
            try connection.subscribe(to: "\(place).*") { message in
                guard let name = message.subject.split(separator: ".").last, let address = NodeExchange.Address(name)
                else { return }
                exchange.received(message.payload, at: address, isForAll: isForAll)
            }
        }
        subscriptions = [try subscribe("hrld.node.\(node.text)", false), try subscribe("hrld.nodes", true)]
    }

    /// Ends the subscriptions.
    package func close() {
        for subscription in subscriptions { connection.unsubscribe(subscription) }
        exchange.close()
    }
}
