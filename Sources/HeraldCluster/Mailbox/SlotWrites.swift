import HeraldMailbox
import HeraldModel
import NIOCore

/// The puts of one slot that have no outcome yet: at most one is on its way, and of the others the newest is sent next.
///
/// So the puts of a slot take effect in the order of the calls. A put that was not sent, or was refused, wrote nothing and is
/// tried again until its deadline, unless a newer one waits. A put with a lost answer is never sent again, and the slot
/// waits until its outcome has been found, or remains unknown. A put that has waited past its deadline by then fails.
///
/// | state | `put` | `stored` | `refused` | `unknown` | `pauseOver` | `settled` |
/// |---|---|---|---|---|---|---|
/// | idle | append | – | – | – | – | – |
/// | on its way | waits | report, append the next | append the next, or pause; fail past the deadline | settle | – | – |
/// | pausing | waits | – | – | – | append the newest | – |
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
        case pausing(Write)
        case settling(Write)
    }

    private var state: State?
    /// Puts that have not been sent, oldest first.
    private var waiting: [Write] = []

    var isIdle: Bool { state == nil }

    mutating func put(_ write: Write) -> [Order] {
        guard state == nil else {
            waiting.append(write)
            return []
        }
        state = .onItsWay(write)
        return [.append(write)]
    }

    mutating func appended(_ outcome: AppendOutcome, at now: NIODeadline) -> [Order] {
        guard case .onItsWay(let write) = state else { return [] }
        switch outcome {
        case .stored(let sequence):
            return [.reportStored(write, sequence: sequence)] + appendNewest(of: takeWaiting())
        case .unknown:
            state = .settling(write)
            return [.settle(write)]
        case .notSent, .refused, .moved:
            return again(write, at: now)
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
        return [report] + append(takeWaiting(), at: now)
    }

    mutating func pauseOver() -> [Order] {
        guard case .pausing(let write) = state else { return [] }
        return appendNewest(of: takeUnsent(write))
    }

    /// Tries a write again that was not made, or the newest one that waits.
    private mutating func again(_ write: Write, at now: NIODeadline) -> [Order] {
        guard waiting.isEmpty else { return append(takeUnsent(write), at: now) }
        let (left, failed) = SlotWrites.split(takeUnsent(write), at: now)
        state = SlotWrites.newest(of: left).map(State.pausing)
        return failed + (state == nil ? [] : [.pause])
    }

    /// Appends the newest of some writes, and fails those that are past their deadline: none was written.
    private mutating func append(_ writes: [Write], at now: NIODeadline) -> [Order] {
        let (left, failed) = SlotWrites.split(writes, at: now)
        return failed + appendNewest(of: left)
    }

    private mutating func appendNewest(of writes: [Write]) -> [Order] {
        let newest = SlotWrites.newest(of: writes)
        state = newest.map(State.onItsWay)
        return newest.map { [.append($0)] } ?? []
    }

    private mutating func takeWaiting() -> [Write] {
        defer { waiting = [] }
        return waiting
    }

    /// All writes that were not made, oldest first.
    private mutating func takeUnsent(_ write: Write) -> [Write] {
        var last = write
        last.overtaken = []
        return write.overtaken + [last] + takeWaiting()
    }

    private static func split(_ writes: [Write], at now: NIODeadline) -> (left: [Write], failed: [Order]) {
        let failed = writes.filter { $0.deadline <= now }.map(Order.reportFailed)
        return (failed.isEmpty ? writes : writes.filter { $0.deadline > now }, failed)
    }

    /// The last of some writes, which takes the place of the others.
    private static func newest(of writes: [Write]) -> Write? {
        var older = writes
        guard var newest = older.popLast() else { return nil }
        newest.overtaken = older
        return newest
    }
}
