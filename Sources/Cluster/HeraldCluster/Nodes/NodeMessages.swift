package import NIOCore

/// Messages between the nodes of a cluster, beside the log: each may be lost.
///
/// Callable from any thread, without waiting. Callbacks come on one thread of the driver, and must not block it.
package protocol NodeMessages: Sendable {
    /// Sends a message to a node; it may be this one.
    func send(_ payload: ByteBuffer, as kind: NodeMessageKind, to node: NodeName)

    /// Sends a message to all other nodes.
    func sendToAll(_ payload: ByteBuffer, as kind: NodeMessageKind)

    /// Asks nodes, and reports the answers when all have answered or the time is over.
    ///
    /// `done` is called once. A node without an answer is absent.
    func ask(
        _ payload: ByteBuffer,
        as kind: NodeMessageKind,
        of nodes: Set<NodeName>,
        within time: Duration,
        _ done: @escaping @Sendable ([NodeName: ByteBuffer]) -> Void
    )

    /// Sets the receiver of a kind.
    ///
    /// `reply` answers an ``ask(_:as:of:within:_:)``, once, from any thread. It does nothing for a message that was only sent.
    func receive(_ kind: NodeMessageKind, _ body: @escaping NodeMessageReceiver)
}

/// A receiver of messages of other nodes.
package typealias NodeMessageReceiver =
    @Sendable (
        _ payload: ByteBuffer, _ sender: NodeName, _ reply: @escaping @Sendable (ByteBuffer) -> Void
    ) -> Void

/// The kind of a message between nodes, which names its receiver there.
package enum NodeMessageKind: String, Hashable, Sendable {
    /// Notifications were stored for devices of the node.
    case ring
    /// Rings were heard.
    case rung
    /// A notification that is never stored, for a device of the node.
    case once
    /// A question for the drills of the node.
    case drills
    /// A query of the journal, which asks for the lines of the node.
    case journal
    /// A search in the journal, which asks for the lines of the node.
    case search
    /// A question for the numbers of lines in the node's journal.
    case tallies
    /// A question for the state of the node.
    case state
    /// An operator ends the connection of a device of the node.
    case disconnect
}
