import HeraldModel
import NIOCore

/// The rings of one partition that are not over: where each goes next, and when.
///
/// A ring costs a few entries at the ends of queues: they are kept in the order in which they are looked at, so that no look goes
/// through all of them.
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
        /// Whether the claims up to a ring are missing after its time.
        var wantsClaims = false
    }

    /// A ring that is not over.
    ///
    /// A class, because it changes in place several times, and is large.
    private final class Waiting {
        var ring: Ring
        let notification: PassedNotification
        /// The number of its last sending, among all sendings of this book.
        ///
        /// An answer to a repetition says nothing of what was sent before it.
        var number: UInt64 = 0
        /// The times that its time was over.
        var timeouts = 0

        init(_ ring: Ring, of notification: PassedNotification) {
            self.ring = ring
            self.notification = notification
        }
    }

    /// The end of a pause of a ring, which may be over by then.
    private struct Due {
        let sequence: UInt64
        let moment: NIODeadline
    }

    private let node: NodeName
    private var waiting: [UInt64: Waiting] = [:]
    private var answers = RingAnswers()
    private var lastNumber: UInt64 = 0
    /// The ends of pauses, by the number of the pause: those of one length come in the order in which they began.
    private var due: [CircularBuffer<Due>]
    /// The rings whose claims are not all known, in the order of the log.
    private var unsettled = CircularBuffer<UInt64>()
    /// The numbers of those rings by their device.
    private var unsettledCounts: [DeviceNumber: Int] = [:]

    init(node: NodeName) {
        self.node = node
        due = ClusterLimits.ringPauses.map { _ in CircularBuffer() }
    }

    var isEmpty: Bool { waiting.isEmpty }

    /// This node has stored a notification, for a device that `hint` probably holds.
    /// - Returns: The first ring; nil if it is too early for one.
    mutating func stored(_ notification: PassedNotification, hint: NodeName?, at now: NIODeadline) -> Order? {
        let one = Waiting(Ring(of: node), of: notification)
        var decision = Decision()
        send(one.ring.isHeld(by: hint), of: one, &decision)
        if waiting.count < ClusterLimits.ringsWaiting {
            let sequence = notification.sequence
            waiting[sequence] = one
            pause(sequence, 0, at: now)
            // Mostly the newest.
            var index = unsettled.endIndex
            while index > unsettled.startIndex, unsettled[unsettled.index(before: index)] > sequence {
                index = unsettled.index(before: index)
            }
            if index == unsettled.endIndex {
                unsettled.append(sequence)
            } else {
                unsettled.insert(sequence, at: index)
            }
            unsettledCounts[notification.slot.device, default: 0] += 1
        }
        return decision.orders.first
    }

    private mutating func send(_ order: Ring.Order?, of one: Waiting, _ decision: inout Decision) {
        guard let order else { return }
        lastNumber += 1
        one.number = lastNumber
        let receiver: NodeName? =
            switch order {
            case .send(let node): node
            case .sendToAll: nil
            }
        decision.orders.append(Order(notification: one.notification, receiver: receiver))
    }

    private mutating func pause(_ sequence: UInt64, _ number: Int, at now: NIODeadline) {
        let number = min(number, due.count - 1)
        due[number].append(Due(sequence: sequence, moment: now + TimeAmount(ClusterLimits.ringPauses[number])))
    }

    /// A claim of a device, or a release, has come.
    ///
    /// `holder` is the node of the newest known claim before a sequence; nil if none holds the device.
    /// - Returns: The rings to send.
    mutating func claimed(_ device: DeviceNumber, _ holder: (UInt64) -> NodeName?) -> [Order] {
        guard unsettledCounts[device] != nil else { return [] }
        var decision = Decision()
        for sequence in unsettled {
            guard let one = waiting[sequence], one.notification.slot.device == device else { continue }
            send(one.ring.isHeld(by: holder(sequence)), of: one, &decision)
        }
        return decision.orders
    }

    /// All claims up to a sequence are known.
    ///
    /// `holder` is the node that held a device at a sequence; nil if none did.
    /// - Returns: The rings to send.
    mutating func settle(upTo position: UInt64, _ holder: (DeviceNumber, UInt64) -> NodeName?) -> Decision {
        var decision = Decision()
        while let sequence = unsettled.first, sequence <= position {
            unsettled.removeFirst()
            guard let one = waiting[sequence] else { continue }
            let device = one.notification.slot.device
            forget(device)
            send(one.ring.wasHeld(by: holder(device, sequence)), of: one, &decision)
            endIfOver(sequence, one, &decision)
        }
        return decision
    }

    /// A node has heard a ring.
    /// - Returns: Whether the ring is over.
    mutating func answered(_ sequence: UInt64, by node: NodeName, at now: NIODeadline) -> Bool {
        let one = waiting[sequence]
        answers.add(node, ring: one?.number, at: now)
        guard let one else { return false }
        one.ring.answered(by: node)
        guard one.ring.isOver else { return false }
        waiting[sequence] = nil
        return true
    }

    /// Repeats the rings whose answers are overdue, or gives them up.
    mutating func overdue(at now: NIODeadline) -> Decision {
        var decision = Decision()
        for number in due.indices {
            while let next = due[number].first, next.moment <= now {
                due[number].removeFirst()
                guard let one = waiting[next.sequence] else { continue }
                if !one.ring.knowsClaims { decision.wantsClaims = true }
                if let holder = one.ring.awaited, answers.isBehind(holder, ring: one.number, at: now) {
                    pause(next.sequence, number, at: now)
                    continue
                }
                send(one.ring.timedOut(), of: one, &decision)
                one.timeouts += 1
                if !endIfOver(next.sequence, one, &decision) { pause(next.sequence, one.timeouts, at: now) }
            }
        }
        if !decision.givenUp.isEmpty { unsettled.removeAll { waiting[$0] == nil } }
        return decision
    }

    /// Forgets a ring that is over.
    /// - Returns: Whether it is.
    @discardableResult
    private mutating func endIfOver(_ sequence: UInt64, _ one: Waiting, _ decision: inout Decision) -> Bool {
        guard one.ring.isOver else { return false }
        waiting[sequence] = nil
        if one.ring.isAnswered { decision.answered.append(sequence) } else { decision.givenUp.append(sequence) }
        if !one.ring.knowsClaims { forget(one.notification.slot.device) }
        return true
    }

    /// Counts one ring less whose claims are not all known.
    private mutating func forget(_ device: DeviceNumber) {
        let left = (unsettledCounts[device] ?? 1) - 1
        unsettledCounts[device] = left == 0 ? nil : left
    }
}
