import HeraldMailbox
package import HeraldModel

/// A stored notification: all but its slot and generation, which its subject names.
package struct SlotRecord: LogRecord, Hashable {
    package static let kind: StaticString = "notification"

    private static let expires: UInt8 = 1
    private static let collapses: UInt8 = 2

    private let id: NotificationID
    private let uniqueID: NotificationID
    private let received: WallTime
    private let storedUntil: WallTime?
    private let priority: Priority
    private let pushType: PushType
    private let collapseID: String?
    private let payload: [UInt8]

    package init(_ notification: Notification) {
        id = notification.id
        uniqueID = notification.uniqueID
        received = notification.received
        storedUntil = notification.storedUntil
        priority = notification.priority
        pushType = notification.pushType
        collapseID = notification.collapseID?.text
        payload = notification.payload
    }

    package var capacity: Int { 128 + payload.count }

    /// The notification, for the slot that the record's subject names.
    package func notification(to slot: Slot) -> Notification {
        Notification(
            id: id,
            uniqueID: uniqueID,
            slot: slot,
            received: received,
            storedUntil: storedUntil,
            priority: priority,
            pushType: pushType,
            // An invalid identifier was never accepted by this version: the notification is delivered without it.
            collapseID: collapseID.flatMap { CollapseID($0) },
            payload: payload
        )
    }

    package init(fields: inout RecordReader) throws(RecordError) {
        let flags = try fields.flags(known: SlotRecord.expires | SlotRecord.collapses)
        priority = try fields.valid(Priority(rawValue: fields.integer()))
        pushType = try fields.valid(PushType(storedCode: fields.integer()))
        received = try fields.time()
        storedUntil = flags & SlotRecord.expires == 0 ? nil : try fields.time()
        id = try fields.id()
        uniqueID = try fields.id()
        collapseID = flags & SlotRecord.collapses == 0 ? nil : try fields.text()
        payload = fields.rest()
    }

    package func write(to fields: inout RecordWriter) {
        let flags = (storedUntil == nil ? 0 : SlotRecord.expires) | (collapseID == nil ? 0 : SlotRecord.collapses)
        fields.integer(flags)
        fields.integer(priority.rawValue)
        fields.integer(pushType.storedCode)
        fields.time(received)
        if let storedUntil { fields.time(storedUntil) }
        fields.id(id)
        fields.id(uniqueID)
        if let collapseID { fields.text(collapseID) }
        fields.rest(payload)
    }
}
