import HeraldMailbox
import HeraldModel
import NIOCore

/// The puts of one slot that have no outcome yet: one is on its way, and the others wait for their turn.
///
/// So the puts of a slot take effect in the order of the calls. A put that has not been sent gives way to the next one: the
/// slot holds only the newest. One for a connected device does not, because that device gets each: it is put by itself, and
/// delivered under its own sequence. Of those, ``ClusterLimits/putsInTurn`` wait, and beyond them the oldest give way too.
///
/// A put that was not sent, or was refused, wrote nothing and is tried again until its deadline. A put with a lost answer is
/// never sent again, and the slot waits until its outcome has been found, or remains unknown. A put that waits for either past
/// its deadline fails.
///
/// | state | `put` | `stored` | `refused` | `unknown` | `pauseOver` | `settled` |
/// |---|---|---|---|---|---|---|
/// | idle | append | – | – | – | – | – |
/// | on its way | waits | report, append the next | pause; fail past the deadline | settle | – | – |
/// | pausing | waits | – | – | – | append the next; fail past the deadline | – |
/// | settling | waits | – | – | – | – | report, append the next; fail past the deadline |
struct SlotWrites {
    /// A put.
    struct Write: Sendable {
        let envelope: Envelope
        let reason: StoreReason
        let tag: PutTag?
        let deadline: NIODeadline
        /// Older puts of the slot whose place it has taken, oldest first.
        var overtaken: [Write] = []

        /// Whether a newer put takes its place while it waits: no connected device waits for it.
        var givesWay: Bool { reason != .beforeDelivery }

        /// The writes that it overtook, and itself, oldest first.
        fileprivate var parts: [Write] {
            var itself = self
            itself.overtaken = []
            return overtaken + [itself]
        }
    }

    /// An order to the driver.
    enum Order {
        case append(Write)
        /// Reports what the write overtook, then the write itself.
        case reportStored(Write, sequence: UInt64)
        case reportFailed(Write)
        /// Fails what the write overtook, and reports that nobody knows the outcome of the write itself.
        case reportUnknown(Write)
        /// Finds out what became of the write; ``settled(_:at:now:)`` follows.
        case settle(Write)
        case pause
    }

    private enum State {
        case onItsWay(Write)
        case pausing
        case settling(Write)
    }

    private var state: State?
    /// Puts that have not been sent, oldest first.
    private var waiting: [Write] = []

    var isIdle: Bool { state == nil }

    mutating func put(_ write: Write) -> [Order] {
        waiting.append(write)
        return state == nil ? appendNext() : []
    }

    mutating func appended(_ outcome: AppendOutcome, at now: NIODeadline) -> [Order] {
        guard case .onItsWay(let write) = state else { return [] }
        switch outcome {
        case .stored(let sequence):
            return [.reportStored(write, sequence: sequence)] + appendNext()
        case .unknown:
            state = .settling(write)
            return [.settle(write)]
        case .notSent, .refused, .moved:
            waiting = write.parts + waiting
            let failed = failOverdue(at: now)
            state = waiting.isEmpty ? nil : .pausing
            return waiting.isEmpty ? failed : failed + [.pause]
        }
    }

    /// Whether the outcome of a put is being looked for.
    func isSettling(_ put: NotificationID) -> Bool {
        guard case .settling(let write) = state else { return false }
        return write.envelope.notification.uniqueID == put
    }

    /// Ends the settling of a put, which was found at a sequence, or nil; a second end does nothing.
    mutating func settled(_ put: NotificationID, at sequence: UInt64?, now: NIODeadline) -> [Order] {
        guard isSettling(put), case .settling(let write) = state else { return [] }
        let report = sequence.map { Order.reportStored(write, sequence: $0) } ?? .reportUnknown(write)
        return [report] + appendNext(at: now)
    }

    mutating func pauseOver(at now: NIODeadline) -> [Order] {
        guard case .pausing = state else { return [] }
        return appendNext(at: now)
    }

    // MARK: - Waiting

    /// Fails those that are past their deadline, and appends the next of the others.
    private mutating func appendNext(at now: NIODeadline) -> [Order] { failOverdue(at: now) + appendNext() }

    /// Appends the oldest that waits and does not give way, or the newest.
    private mutating func appendNext() -> [Order] {
        guard let last = waiting.indices.last else {
            state = nil
            return []
        }
        let kept = waiting.firstIndex { !$0.givesWay } ?? last
        let index = max(kept, waiting.count - ClusterLimits.putsInTurn)
        var next = waiting[index]
        next.overtaken = Array(waiting[..<index])
        waiting.removeFirst(index + 1)
        state = .onItsWay(next)
        return [.append(next)]
    }

    /// None of these was written.
    private mutating func failOverdue(at now: NIODeadline) -> [Order] {
        let failed = waiting.filter { $0.deadline <= now }.map(Order.reportFailed)
        if !failed.isEmpty { waiting.removeAll { $0.deadline <= now } }
        return failed
    }
}
