import HeraldModel

/// A decision of a ``DeliveryShard`` for the post office to perform.
enum DeliveryEffect {
    case deliver(any DeviceLink, Delivery)
    case dismiss(any DeviceLink, DismissalReason)
    /// Reads the stored notifications of slots of one device; the answer has the number of the read.
    case read([RegisteredSlot], number: UInt64)
    /// An effect on one envelope; the notification itself is too large to be copied with every step.
    case envelope(Envelope, EnvelopeEffect)
}

/// A change to the store, the journal or the provider's answer of one envelope.
enum EnvelopeEffect: Hashable {
    case store(StoreReason, PutTag?)
    /// Removes it from the store, with a line in the journal.
    case remove(sequence: UInt64, JournalState, replacement: NotificationID? = nil)
    case record(JournalState)
    /// Records a line and accepts the provider's request at once.
    case acceptAndRecord(JournalState)
    /// Records a line and accepts the provider's request when the line is durable.
    case recordThenAccept(JournalState, replacement: NotificationID? = nil)
    case settle(CompletionOutcome)
    /// Passes it to the node that holds the device; if no node takes it, it is discarded, as the device is away.
    case passOn

    /// The status that the envelope gets at once; nil for no change.
    var status: JournalState? {
        switch self {
        case .store(let reason, _): JournalState(stored: reason)
        case .recordThenAccept(let state, _): state
        case .acceptAndRecord, .remove, .record, .settle, .passOn: nil
        }
    }
}
