import HeraldMailbox
import HeraldModel

/// Content of a row for the digest of its chunk: a summary of its events, and hashes of their identifiers and devices.
struct JournalKeys {
    private(set) var summary = JournalSummary()
    private(set) var identifiers: [UInt64] = []
    private(set) var devices: [UInt64] = []

    static func hash(_ id: NotificationID) -> UInt64 { BlockFilter.hash(id.high, id.low) }

    static func hash(_ device: DeviceNumber) -> UInt64 { BlockFilter.hash(device.value) }

    /// Adds an event; what it shares with the event before is there already.
    mutating func add(
        _ event: JournalEvent,
        isNewSlot: Bool = true,
        isNewApp: Bool = true,
        isNewSender: Bool = true,
        isNewID: Bool = true,
        isNewUniqueID: Bool = true
    ) {
        summary.add(event, isNewApp: isNewApp, isNewSender: isNewSender)
        if isNewSlot, case .device(let device) = event.recipient { devices.append(JournalKeys.hash(device)) }
        if isNewID { identifiers.append(JournalKeys.hash(event.id)) }
        if isNewUniqueID { identifiers.append(JournalKeys.hash(event.uniqueID)) }
    }
}
