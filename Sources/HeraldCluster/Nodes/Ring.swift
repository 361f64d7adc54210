/// A message of the node that stored a notification to the node that holds its device.
///
/// The log says who holds the device as of the notification's sequence: a claim after it reads it. The ring is repeated to
/// all nodes until that holder has answered, three times; after that the device's next connection brings the notification.
package struct Ring: Sendable {
    /// An order to the driver.
    package enum Order: Hashable, Sendable {
        case send(NodeName)
        case sendToAll
    }

    /// The times that an unanswered ring is sent to all nodes.
    package static let repetitions = 3

    private enum Holder {
        /// The claims up to the notification's sequence are not all known here.
        case unknown
        case nobody
        case node(NodeName)
    }

    private let node: NodeName
    private var holder = Holder.unknown
    private var sent: Set<NodeName> = []
    private var answered: Set<NodeName>
    private var repeated = 0

    /// A ring of `node`, which has answered already.
    package init(of node: NodeName) {
        self.node = node
        answered = [node]
    }

    /// Whether the holder has answered, or there is none.
    package var isAnswered: Bool {
        switch holder {
        case .unknown: false
        case .nobody: true
        case .node(let node): answered.contains(node)
        }
    }

    /// Whether nothing is left to do.
    package var isOver: Bool { isAnswered || isGivenUp }

    /// Whether nobody answered the last repetition either.
    package var isGivenUp: Bool { repeated > Ring.repetitions }

    /// Begins, with the node that probably holds the device.
    package mutating func begin(hint: NodeName?) -> Order? { hint.flatMap { send(to: $0) } }

    /// The claims up to the notification's sequence are known: this node held the device then, or nobody.
    package mutating func wasHeld(by holder: NodeName?) -> Order? {
        self.holder = holder.map(Holder.node) ?? .nobody
        return isAnswered ? nil : holder.flatMap { send(to: $0) }
    }

    package mutating func answered(by node: NodeName) { answered.insert(node) }

    /// An answer is overdue.
    package mutating func timedOut() -> Order? {
        guard !isOver else { return nil }
        repeated += 1
        return isGivenUp ? nil : .sendToAll
    }

    private mutating func send(to node: NodeName) -> Order? {
        guard node != self.node, sent.insert(node).inserted else { return nil }
        return .send(node)
    }
}
