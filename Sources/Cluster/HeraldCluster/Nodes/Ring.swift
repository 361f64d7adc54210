/// A message of the node that stored a notification to the node that holds its device.
///
/// It matters only for a claim before the notification: the read after a later one has the notification. The newest claim that
/// is known names the holder. The ring is *heard* when that node has answered, or nobody holds the device. It is over when it
/// is heard, and all claims up to the notification are known, so that no other node can have been the holder.
///
/// A heard ring is not repeated while the claims may still come. One that is not heard goes to all nodes, ``repetitions`` times; after
/// that the device's next connection brings the notification.
package struct Ring: Sendable {
    /// An order to the driver.
    package enum Order: Hashable, Sendable {
        case send(NodeName)
        case sendToAll
    }

    /// The times that an unanswered ring is sent to all nodes.
    package static let repetitions = ClusterLimits.ringPauses.count - 1

    private let node: NodeName
    private var holder: NodeName?
    /// Whether the holder, which may be this node, has the notification.
    private var hasHolderAnswered = false
    /// The nodes that were rung or have answered, and did not hold the device then: nearly always none.
    private var others = Others()
    /// Whether all claims up to the notification are known.
    package private(set) var knowsClaims = false
    /// Whether the time was over once, and only the claims were missing.
    private var hasWaited = false
    private var repeated = 0

    private struct Others {
        var rung: [NodeName] = []
        var answered: [NodeName] = []
    }

    /// A ring of `node`, which needs none itself.
    package init(of node: NodeName) {
        self.node = node
    }

    /// The node that has to answer; nil if it has, or if nobody has to, as far as the claims are known.
    package var awaited: NodeName? { hasHolderAnswered ? nil : holder }

    /// Whether the holder has answered, or there is none, as far as the claims are known.
    package var isHeard: Bool { holder == nil || hasHolderAnswered }

    /// Whether the holder has answered, or there is none, and it is certain who that is.
    package var isAnswered: Bool { knowsClaims && isHeard }

    /// Whether nothing is left to do.
    package var isOver: Bool { isAnswered || isGivenUp }

    /// Whether nobody answered the last repetition either.
    package var isGivenUp: Bool { repeated > Ring.repetitions }

    /// This node holds the device by the newest claim before the notification that is known; nil: nobody does.
    package mutating func isHeld(by newHolder: NodeName?) -> Order? {
        guard newHolder != holder else { return nil }
        if let holder, holder != node {
            others.rung.append(holder)
            if hasHolderAnswered { others.answered.append(holder) }
        }
        holder = newHolder
        guard let newHolder, newHolder != node else {
            hasHolderAnswered = newHolder != nil
            return nil
        }
        hasHolderAnswered = others.answered.contains(newHolder)
        return others.rung.contains(newHolder) || hasHolderAnswered ? nil : .send(newHolder)
    }

    /// All claims up to the notification are known: this node held the device then, or nobody.
    package mutating func wasHeld(by holder: NodeName?) -> Order? {
        knowsClaims = true
        return isHeld(by: holder)
    }

    package mutating func answered(by node: NodeName) {
        if node == holder {
            hasHolderAnswered = true
        } else if !others.answered.contains(node) {
            others.answered.append(node)
        }
    }

    /// The time for an answer, or for the claims, is over.
    package mutating func timedOut() -> Order? {
        guard !isOver else { return nil }
        if isHeard, !hasWaited {
            hasWaited = true
            return nil
        }
        repeated += 1
        return isGivenUp ? nil : .sendToAll
    }
}
