package import HeraldMailbox
package import HeraldModel
import NIOCore

/// A notification on its way from the node that has it to the node that holds its device.
package struct PassedNotification: Sendable {
    package let notification: Notification
    package let generation: UInt32
    /// Its sequence in the mailbox's stream; 0 if it is never stored.
    package let sequence: UInt64

    /// The notification, as the receiver's post office takes it.
    package var stored: StoredNotification {
        StoredNotification(notification: notification, generation: generation, sequence: sequence)
    }

    var slot: Slot { notification.slot }

    init(_ envelope: Envelope, sequence: UInt64 = 0) {
        notification = envelope.notification
        generation = envelope.generation
        self.sequence = sequence
    }

    init(fields: inout RecordReader) throws(RecordError) {
        let slot = Slot(device: DeviceNumber(try fields.integer()), app: AppNumber(try fields.integer()))
        generation = try fields.integer()
        sequence = try fields.integer()
        notification = try SlotRecord(fields.block()).notification(to: slot)
    }

    func write(to fields: inout RecordWriter) {
        fields.integer(slot.device.value)
        fields.integer(slot.app.value)
        fields.integer(generation)
        fields.integer(sequence)
        fields.block(SlotRecord(notification).body)
    }

    /// About the bytes that it takes.
    var bytes: Int { notification.payload.count + 200 }
}

/// Rings: notifications that the sender has stored, for devices of the receiver.
package struct RingRecord: LogRecord {
    package static let kind: StaticString = "ring"

    package let notifications: [PassedNotification]

    init(_ notifications: [PassedNotification]) {
        self.notifications = notifications
    }

    package var capacity: Int { notifications.reduce(8) { $0 + $1.bytes } }

    package init(fields: inout RecordReader) throws(RecordError) {
        var found: [PassedNotification] = []
        for _ in 0..<(try fields.integer(UInt16.self)) { found.append(try PassedNotification(fields: &fields)) }
        notifications = found
    }

    package func write(to fields: inout RecordWriter) {
        fields.integer(UInt16(clamping: notifications.count))
        for notification in notifications.prefix(Int(UInt16.max)) { notification.write(to: &fields) }
    }
}

/// The answer to rings: the receiver has handed the notifications to its connections, or has no such connection.
struct RungRecord: LogRecord, Hashable {
    static let kind: StaticString = "answer to rings"

    struct Place: Hashable, Sendable {
        let partition: Partition
        let sequence: UInt64
    }

    let places: [Place]

    init(_ places: [Place]) {
        self.places = places
    }

    var capacity: Int { 8 + 9 * places.count }

    init(fields: inout RecordReader) throws(RecordError) {
        var found: [Place] = []
        for _ in 0..<(try fields.integer(UInt16.self)) {
            let partition = Partition(Int(try fields.integer(UInt8.self)))
            found.append(Place(partition: partition, sequence: try fields.integer()))
        }
        places = found
    }

    func write(to fields: inout RecordWriter) {
        fields.integer(UInt16(clamping: places.count))
        for place in places.prefix(Int(UInt16.max)) {
            fields.integer(UInt8(clamping: place.partition.index))
            fields.integer(place.sequence)
        }
    }
}

/// A notification that is never stored, for a device of the receiver.
struct OnceRecord: LogRecord {
    static let kind: StaticString = "notification without storage"

    let notification: PassedNotification

    init(_ notification: PassedNotification) {
        self.notification = notification
    }

    init(fields: inout RecordReader) throws(RecordError) {
        notification = try PassedNotification(fields: &fields)
    }

    func write(to fields: inout RecordWriter) { notification.write(to: &fields) }
}
