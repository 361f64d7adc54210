import HeraldMailbox
import HeraldModel
import NIOCore

/// The rings of one partition that are not over: to whom each goes next, and when.
struct RingBook {
    /// A ring to send.
    struct Order {
        let notification: PassedNotification
        /// nil for all other nodes.
        let receiver: NodeName?
    }

    /// Rings to send, and rings that are over.
    struct Decision {
        var orders: [Order] = []
        /// The sequences of those that the holder has answered, or that nobody held.
        var answered: [UInt64] = []
        /// The sequences of those that nobody has answered.
        var givenUp: [UInt64] = []

        mutating func add(_ order: Ring.Order?, _ ring: Ring, _ notification: PassedNotification) {
            switch order {
            case nil: break
            case .send(let node): orders.append(Order(notification: notification, receiver: node))
            case .sendToAll: orders.append(Order(notification: notification, receiver: nil))
            }
            if ring.isAnswered {
                answered.append(notification.sequence)
            } else if ring.isGivenUp {
                givenUp.append(notification.sequence)
            }
        }

        /// In the order of the log, so that a simulation repeats itself.
        func sorted() -> Decision {
            let orders = orders.sorted { $0.notification.sequence < $1.notification.sequence }
            return Decision(orders: orders, answered: answered.sorted(), givenUp: givenUp.sorted())
        }
    }

    private struct Waiting {
        var ring: Ring
        let notification: PassedNotification
        /// The times that it was sent, or would have been if a receiver had been known.
        var attempts = 1
        var due: NIODeadline
    }

    private let node: NodeName
    private var waiting: [UInt64: Waiting] = [:]

    init(node: NodeName) {
        self.node = node
    }

    var isEmpty: Bool { waiting.isEmpty }

    /// This node has stored a notification.
    /// - Parameters:
    ///   - notification: The notification.
    ///   - hint: The node that probably holds the device.
    ///   - now: The present moment.
    /// - Returns: The first ring; nil if nobody is to be rung yet.
    mutating func stored(_ notification: PassedNotification, hint: NodeName?, at now: NIODeadline) -> Order? {
        var ring = Ring(of: node)
        var decision = Decision()
        decision.add(ring.begin(hint: hint), ring, notification)
        if waiting.count < ClusterLimits.ringsWaiting {
            let due = now + TimeAmount(ClusterLimits.ringPauses[0])
            waiting[notification.sequence] = Waiting(ring: ring, notification: notification, due: due)
        }
        return decision.orders.first
    }

    /// All claims up to a sequence are known.
    /// - Parameters:
    ///   - position: The sequence.
    ///   - holder: The node that held a device at a sequence; nil if none did.
    /// - Returns: The rings to send.
    mutating func settle(upTo position: UInt64, _ holder: (DeviceNumber, UInt64) -> NodeName?) -> Decision {
        var decision = Decision()
        for (sequence, one) in waiting where sequence <= position {
            var one = one
            let order = one.ring.wasHeld(by: holder(one.notification.slot.device, sequence))
            decision.add(order, one.ring, one.notification)
            waiting[sequence] = one.ring.isOver ? nil : one
        }
        return decision.sorted()
    }

    /// A node has heard a ring.
    /// - Returns: Whether the ring is over.
    mutating func answered(_ sequence: UInt64, by node: NodeName) -> Bool {
        waiting[sequence]?.ring.answered(by: node)
        guard waiting[sequence]?.ring.isOver ?? false else { return false }
        waiting[sequence] = nil
        return true
    }

    /// Repeats the rings whose answers are overdue, or gives them up.
    mutating func overdue(at now: NIODeadline) -> Decision {
        var decision = Decision()
        let pauses = ClusterLimits.ringPauses
        for (sequence, one) in waiting where one.due <= now {
            var one = one
            decision.add(one.ring.timedOut(), one.ring, one.notification)
            one.due = now + TimeAmount(pauses[min(one.attempts, pauses.count - 1)])
            one.attempts += 1
            waiting[sequence] = one.ring.isOver ? nil : one
        }
        return decision.sorted()
    }
}
