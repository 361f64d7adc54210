import HeraldMailbox
import NIOCore

/// The puts of one slot that have no outcome yet: at most one is on its way, and the newest of the others waits.
///
/// So the puts of a slot take effect in the order of the calls. A put that was not sent, or was refused, wrote nothing and is
/// tried again until its deadline, unless a newer one waits. A put with an unknown outcome is never sent again.
///
/// | state | `put` | `stored` | `refused` | `unknown` | `pauseOver` |
/// |---|---|---|---|---|---|
/// | idle | append | – | – | – | – |
/// | on its way | waits in place of an older one | report, append the next | append the next, or pause; fail past the deadline | settle, append the next | – |
/// | pausing | takes the place of the older one, append | – | – | – | append |
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
        /// Finds out what became of the write.
        case settle(Write)
        case pause
    }

    private enum State {
        case onItsWay(Write)
        case pausing(Write)
    }

    private var state: State?
    private var next: Write?

    var isIdle: Bool { state == nil }

    mutating func put(_ write: Write) -> [Order] {
        switch state {
        case nil:
            state = .onItsWay(write)
            return [.append(write)]
        case .onItsWay:
            next = SlotWrites.merge(next, into: write)
            return []
        case .pausing(let older):
            let write = SlotWrites.merge(older, into: write)
            state = .onItsWay(write)
            return [.append(write)]
        }
    }

    mutating func appended(_ outcome: AppendOutcome, at now: NIODeadline) -> [Order] {
        guard case .onItsWay(let write) = state else { return [] }
        switch outcome {
        case .stored(let sequence):
            return [.reportStored(write, sequence: sequence)] + appendNext()
        case .unknown:
            return [.settle(write)] + appendNext()
        case .notSent, .refused, .moved:
            return again(write, at: now)
        }
    }

    /// Tries a write again that was not made, or the newer one that waits.
    private mutating func again(_ write: Write, at now: NIODeadline) -> [Order] {
        var write = write
        let failed = write.overtaken.filter { $0.deadline <= now }.map(Order.reportFailed)
        write.overtaken.removeAll { $0.deadline <= now }
        if let newer = next {
            next = nil
            let merged = SlotWrites.merge(write, into: newer)
            state = .onItsWay(merged)
            return failed + [.append(merged)]
        }
        guard now < write.deadline else {
            state = nil
            return failed + [.reportFailed(write)]
        }
        state = .pausing(write)
        return failed + [.pause]
    }

    mutating func pauseOver() -> [Order] {
        guard case .pausing(let write) = state else { return [] }
        state = .onItsWay(write)
        return [.append(write)]
    }

    private mutating func appendNext() -> [Order] {
        state = next.map(State.onItsWay)
        defer { next = nil }
        return next.map { [.append($0)] } ?? []
    }

    private static func merge(_ older: Write?, into write: Write) -> Write {
        guard var older else { return write }
        var write = write
        let overtaken = older.overtaken
        older.overtaken = []
        write.overtaken = overtaken + [older] + write.overtaken
        return write
    }
}
