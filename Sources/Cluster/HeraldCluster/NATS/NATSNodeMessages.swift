package import HeraldNATS
import NIOCore

/// Messages between nodes over core NATS, sealed for their subject: `hrld.node.<name>.<kind>` to a node, and `hrld.nodes.<kind>`
/// to all.
package final class NATSNodeMessages: Sendable {
    package let exchange: NodeExchange
    private let connection: NATSConnection
    private let subscriptions: [NATSConnection.Subscription]

    /// Subscribes to the messages for a node; those that the seal of the incarnation does not open are dropped.
    /// - Throws: If the connection takes no more subscriptions.
    package init(
        _ connection: NATSConnection,
        node: NodeName,
        seal: RecordSeal,
        _ setAside: SetAside
    ) throws(NATSError) {
        self.connection = connection
        let exchange = NodeExchange(node: node, scheduler: EventLoopScheduler(connection.eventLoop)) {
            [weak connection] bytes, address, node in
            let subject = "\(node.map { "hrld.node.\($0.text)" } ?? "hrld.nodes").\(address.text)"
            guard let sealed = seal.seal(bytes, at: subject) else { return }
            // Without a connection it is lost, as it may be on its way.
            try? connection?.publish(sealed, to: subject)
        }
        self.exchange = exchange
        let subscribe = { (place: String, isForAll: Bool) throws(NATSError) in
            try connection.subscribe(to: "\(place).*") { message in
                let subject = message.subject
                guard let name = subject.split(separator: ".").last, let address = NodeExchange.Address(name)
                else { return }
                guard let payload = seal.open(message.payload, at: subject) else {
                    return setAside.message(subject)
                }
                exchange.received(payload, at: address, isForAll: isForAll)
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
