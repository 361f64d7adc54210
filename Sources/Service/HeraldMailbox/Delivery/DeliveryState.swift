import HeraldModel

/// The life of one delivery: a table of states and events, without clock, lock or store.
///
/// A delivery begins as `unstored`, `singleAttempt` or `stored`. Each entry is the next state, then the effect. A dash
/// means that nothing changes.
///
/// | state | `finished` | `newerAcknowledged` | `connectionLost` | `registrationEnded` |
/// |---|---|---|---|---|
/// | `unstored` | ended, accept and record | replaced, record | storing, store (ended, record if disabled) | ended, record |
/// | `singleAttempt` | ended, record | – | ended, record | ended, record |
/// | `storing` | finishedWhileStoring | replacedWhileStoring | – | ended |
/// | `stored` | ended, remove | replaced, remove | ended | ended |
/// | `finishedWhileStoring` | – | – | – | ended |
/// | `replaced` | ended, record | – | ended | ended |
/// | `replacedWhileStoring` | finishedWhileStoring | – | – | ended |
///
/// | state | `storageDue` | `stored` | `storeFailed` |
/// |---|---|---|---|
/// | `unstored` | storing, store | – | – |
/// | `storing` | – | stored | singleAttempt, refuse |
/// | `finishedWhileStoring` | – | ended, remove | ended, accept and record |
/// | `replacedWhileStoring` | – | replaced, remove (unless the store replaced it) | replaced, record |
/// | every other | – | – | – |
enum DeliveryState: Hashable {
    /// Not stored: stored if the device takes too long or goes away.
    case unstored
    /// Never to be stored.
    case singleAttempt
    /// Ordered to be stored; the store has not confirmed it.
    case storing
    /// Stored under this sequence.
    case stored(sequence: UInt64)
    /// Finished by the device before the store has confirmed it.
    case finishedWhileStoring(JournalState)
    /// The device acknowledged a newer notification of the app first; this one is no longer in the store.
    case replaced
    /// The same before the store has confirmed this one.
    case replacedWhileStoring(by: NotificationID)
    /// Nothing is left to do.
    case ended

    /// Whether the store has yet to confirm it.
    var isBeingStored: Bool {
        switch self {
        case .storing, .finishedWhileStoring, .replacedWhileStoring: true
        case .unstored, .singleAttempt, .stored, .replaced, .ended: false
        }
    }

    func after(_ event: DeliveryEvent) -> (next: DeliveryState, effect: EnvelopeEffect?) {
        switch event {
        case .finished(let result): afterFinished(result)
        case .newerAcknowledged(let newer): afterNewerAcknowledged(newer)
        case .connectionLost(let isEnabled): afterConnectionLost(isEnabled: isEnabled)
        case .registrationEnded: afterRegistrationEnded
        case .storageDue(let tag): afterStorageDue(tag)
        case .stored(let sequence, let isReplaced): afterStored(sequence, isReplaced: isReplaced)
        case .storeFailed: afterStoreFailed
        }
    }

    private func afterFinished(_ result: JournalState) -> (DeliveryState, EnvelopeEffect?) {
        switch self {
        case .unstored: (.ended, .acceptAndRecord(result))
        case .singleAttempt, .replaced: (.ended, .record(result))
        case .storing, .replacedWhileStoring: (.finishedWhileStoring(result), nil)
        case .stored(let sequence): (.ended, .remove(sequence: sequence, result))
        case .finishedWhileStoring, .ended: (self, nil)
        }
    }

    private func afterNewerAcknowledged(_ newer: NotificationID) -> (DeliveryState, EnvelopeEffect?) {
        switch self {
        case .unstored: (.replaced, .recordThenAccept(.replaced, replacement: newer))
        case .storing: (.replacedWhileStoring(by: newer), nil)
        case .stored(let sequence): (.replaced, .remove(sequence: sequence, .replaced, replacement: newer))
        case .singleAttempt, .finishedWhileStoring, .replaced, .replacedWhileStoring, .ended: (self, nil)
        }
    }

    private func afterConnectionLost(isEnabled: Bool) -> (DeliveryState, EnvelopeEffect?) {
        switch self {
        case .unstored:
            isEnabled ? (.storing, .store(.unacknowledged, nil)) : (.ended, .recordThenAccept(.discardedDisabled))
        case .singleAttempt: (.ended, .record(.discardedDeviceOffline))
        case .stored, .replaced: (.ended, nil)
        case .storing, .finishedWhileStoring, .replacedWhileStoring, .ended: (self, nil)
        }
    }

    /// The store itself removes the app's stored notification, and reports a pending one, which is removed then.
    private var afterRegistrationEnded: (DeliveryState, EnvelopeEffect?) {
        switch self {
        case .unstored: (.ended, .recordThenAccept(.discardedUnregistered))
        case .singleAttempt: (.ended, .record(.discardedUnregistered))
        case .storing, .stored, .finishedWhileStoring, .replaced, .replacedWhileStoring, .ended: (.ended, nil)
        }
    }

    private func afterStorageDue(_ tag: PutTag) -> (DeliveryState, EnvelopeEffect?) {
        switch self {
        case .unstored: (.storing, .store(.unacknowledged, tag))
        case .singleAttempt, .storing, .stored, .finishedWhileStoring, .replaced, .replacedWhileStoring, .ended:
            (self, nil)
        }
    }

    private func afterStored(_ sequence: UInt64, isReplaced: Bool) -> (DeliveryState, EnvelopeEffect?) {
        switch self {
        case .storing: (.stored(sequence: sequence), nil)
        case .finishedWhileStoring(let result): (.ended, .remove(sequence: sequence, result))
        case .replacedWhileStoring(let newer):
            (.replaced, isReplaced ? nil : .remove(sequence: sequence, .replaced, replacement: newer))
        case .unstored, .singleAttempt, .stored, .replaced, .ended: (self, nil)
        }
    }

    private var afterStoreFailed: (DeliveryState, EnvelopeEffect?) {
        switch self {
        case .storing: (.singleAttempt, .settle(.refused(.serviceUnavailable)))
        case .finishedWhileStoring(let result): (.ended, .acceptAndRecord(result))
        case .replacedWhileStoring(let newer): (.replaced, .recordThenAccept(.replaced, replacement: newer))
        case .unstored, .singleAttempt, .stored, .replaced, .ended: (self, nil)
        }
    }
}

/// An event in the life of a delivery.
enum DeliveryEvent: Hashable {
    /// The courier has finished it: acknowledged, refused, written, too large or expired.
    case finished(JournalState)
    /// The device acknowledged a newer notification of the app, which was never stored.
    case newerAcknowledged(NotificationID)
    /// The connection is gone.
    case connectionLost(isEnabled: Bool)
    /// The app was removed from the device.
    case registrationEnded
    /// The grace is over, or a newer notification of the app is about to be stored.
    case storageDue(PutTag)
    /// The store has confirmed it; `isReplaced` if a later write of the same commit took its place.
    case stored(sequence: UInt64, isReplaced: Bool)
    /// The store could not take it.
    case storeFailed
}
