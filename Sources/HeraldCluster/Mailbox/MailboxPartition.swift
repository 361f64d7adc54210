import HeraldMailbox
import HeraldModel
import NIOCore

/// The decisions of one node about one partition of the mailbox.
struct MailboxPartition {
    /// The reads of one device that are under way.
    private struct Reads {
        var count = 0
        /// The sequences whose removal was confirmed meanwhile.
        var removed: Set<UInt64> = []
    }

    /// The greatest sequence that this node has seen: of its own writes, of claims, and of rings.
    ///
    /// Reads are bounded by it. So a read contains every put that this node has reported, and all that was stored before the
    /// device was claimed here.
    private(set) var bound: UInt64 = 0
    /// Whether a put has failed, and no barrier has been made since.
    private(set) var isClosed = false
    private var writes: [RegisteredSlot: SlotWrites] = [:]
    private var removing: Set<UInt64> = []
    private var reads: [DeviceNumber: Reads] = [:]

    /// The number of slots with a put that has no outcome.
    var busySlots: Int { writes.count }

    mutating func saw(_ sequence: UInt64) { bound = max(bound, sequence) }

    // MARK: - Puts

    mutating func put(_ write: SlotWrites.Write, to slot: RegisteredSlot) -> [SlotWrites.Order] {
        writes[slot, default: SlotWrites()].put(write)
    }

    mutating func appended(_ slot: RegisteredSlot, _ outcome: AppendOutcome, at now: NIODeadline) -> [SlotWrites.Order]
    {
        if case .stored(let sequence) = outcome { saw(sequence) }
        let orders = writes[slot]?.appended(outcome, at: now) ?? []
        if writes[slot]?.isIdle ?? false { writes[slot] = nil }
        return orders
    }

    mutating func pauseOver(_ slot: RegisteredSlot) -> [SlotWrites.Order] { writes[slot]?.pauseOver() ?? [] }

    /// Takes nothing more until the partition can be written again.
    /// - Returns: Whether it was open.
    mutating func close() -> Bool {
        defer { isClosed = true }
        return !isClosed
    }

    mutating func reopen() { isClosed = false }

    // MARK: - Removals

    /// A removal begins: no read finds the sequence from now on.
    mutating func remove(_ sequence: UInt64) { removing.insert(sequence) }

    /// The outcome of a removal.
    /// - Returns: Whether it is to be tried again, which is harmless: it names the sequence that it removes.
    mutating func removed(_ sequence: UInt64, of device: DeviceNumber, _ outcome: AppendOutcome) -> Bool {
        switch outcome {
        case .stored(let tombstone): saw(tombstone)
        case .moved(let newest): saw(newest)
        case .refused, .notSent, .unknown: return true
        }
        removing.remove(sequence)
        reads[device]?.removed.insert(sequence)
        return false
    }

    // MARK: - Reads

    mutating func beginRead(_ devices: Set<DeviceNumber>) -> UInt64 {
        for device in devices { reads[device, default: Reads()].count += 1 }
        return bound
    }

    /// Ends a read.
    /// - Returns: The entries that were not removed meanwhile.
    mutating func endRead(_ devices: Set<DeviceNumber>, _ entries: [LogEntry]) -> [LogEntry] {
        var removed: Set<UInt64> = removing
        for device in devices {
            guard var its = reads[device] else { continue }
            removed.formUnion(its.removed)
            its.count -= 1
            reads[device] = its.count == 0 ? nil : its
        }
        return entries.filter { !removed.contains($0.sequence) }
    }
}
