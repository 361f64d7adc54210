import HeraldMailbox
import HeraldModel
import NIOCore

/// The decisions of one node about one partition of the mailbox.
struct MailboxPartition {
    /// A stored notification to remove.
    struct Removal: Hashable, Sendable {
        let slot: RegisteredSlot
        let sequence: UInt64
    }

    /// The reads of one device that are under way.
    private struct Reads {
        var count = 0
        /// The sequences whose removal was confirmed meanwhile.
        var removed: Set<UInt64> = []
    }

    /// The greatest sequence that this node has seen: of its own writes, of claims, of rings, and of what it has read.
    ///
    /// Reads are bounded by it. So a read contains every put that this node has reported, all that was stored before the
    /// device was claimed here, and what an earlier read has found: another replica may lag behind the one that answered.
    private(set) var bound: UInt64 = 0
    /// Whether a put has failed or has lost its answer, and no barrier has been made since.
    private(set) var isClosed = false
    private var writes: [RegisteredSlot: SlotWrites] = [:]
    private var removing: Set<UInt64> = []
    /// The removals that were not made, and wait for the next attempt.
    private var unmade: [Removal] = []
    private var isRetryAwaited = false
    private var reads: [DeviceNumber: Reads] = [:]
    /// The connections of this node.
    private(set) var held = HeldDevices()

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

    /// Ends the settling of a put: it was found at a sequence, or remains unknown.
    mutating func settled(
        _ slot: RegisteredSlot,
        _ put: NotificationID,
        at sequence: UInt64?,
        now: NIODeadline
    ) -> [SlotWrites.Order] {
        if let sequence { saw(sequence) }
        let orders = writes[slot]?.settled(put, at: sequence, now: now) ?? []
        if writes[slot]?.isIdle ?? false { writes[slot] = nil }
        return orders
    }

    /// Whether the outcome of a put is being looked for.
    func isSettling(_ slot: RegisteredSlot, _ put: NotificationID) -> Bool { writes[slot]?.isSettling(put) ?? false }

    mutating func pauseOver(_ slot: RegisteredSlot, at now: NIODeadline) -> [SlotWrites.Order] {
        let orders = writes[slot]?.pauseOver(at: now) ?? []
        if writes[slot]?.isIdle ?? false { writes[slot] = nil }
        return orders
    }

    /// Takes nothing more until the partition can be written again.
    /// - Returns: Whether it was open.
    mutating func close() -> Bool {
        defer { isClosed = true }
        return !isClosed
    }

    /// The partition can be written again.
    /// - Returns: The removals to try again.
    mutating func reopen() -> [Removal] {
        isClosed = false
        return takeUnmade()
    }

    // MARK: - Removals

    /// A removal begins: no read finds the sequence from now on.
    mutating func remove(_ sequence: UInt64) { removing.insert(sequence) }

    /// The outcome of a removal.
    ///
    /// A removal that was not made is tried again with all others of the partition. That is harmless: it names what it removes.
    /// - Returns: Whether ``retryRemovals()`` is to follow after a pause.
    mutating func removed(_ removal: Removal, _ outcome: AppendOutcome) -> Bool {
        switch outcome {
        case .stored(let tombstone): saw(tombstone)
        case .moved(let newest): saw(newest)
        case .refused, .notSent, .unknown:
            unmade.append(removal)
            defer { isRetryAwaited = true }
            return !isRetryAwaited
        }
        removing.remove(removal.sequence)
        reads[removal.slot.slot.device]?.removed.insert(removal.sequence)
        return false
    }

    /// The pause after removals that were not made is over.
    /// - Returns: The removals to try again; none while the partition is closed, as ``reopen()`` returns them.
    mutating func retryRemovals() -> [Removal] {
        isRetryAwaited = false
        return isClosed ? [] : takeUnmade()
    }

    private mutating func takeUnmade() -> [Removal] {
        defer { unmade = [] }
        return unmade
    }

    // MARK: - Reads

    mutating func beginRead(_ slots: some Sequence<Slot>, of devices: Set<DeviceNumber>) -> UInt64 {
        for device in devices { reads[device, default: Reads()].count += 1 }
        for slot in slots { held.reads(slot, bound: bound) }
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
        for entry in entries { saw(entry.sequence) }
        return entries.filter { !removed.contains($0.sequence) }
    }

    // MARK: - Connections

    /// ``HeldDevices/claimed(_:fence:newest:)``, and later reads contain everything before the claim.
    mutating func claimed(_ device: DeviceNumber, fence: UInt64, newest: UInt64?) -> Bool {
        saw(fence)
        return held.claimed(device, fence: fence, newest: newest)
    }

    mutating func released(_ device: DeviceNumber, fence: UInt64) -> Bool { held.released(device, fence: fence) }

    mutating func saw(claim sequence: UInt64, of device: DeviceNumber) -> UInt64? {
        held.saw(claim: sequence, of: device)
    }

    /// Another node has stored a notification for a device; later reads contain it.
    /// - Returns: Whether no read of the slot that has begun had to contain it.
    mutating func rung(_ sequence: UInt64, of slot: Slot) -> Bool {
        saw(sequence)
        return held.isNews(sequence, of: slot)
    }
}
