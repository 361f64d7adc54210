package import HeraldMailbox
package import HeraldModel

/// A device: its identifier and number, and its state between connections, with the fence of the connection that owns it.
package struct DeviceLogRecord: LogRecord, Hashable {
    package static let kind: StaticString = "device"

    private static let savesPower: UInt8 = 1
    private static let hasSession: UInt8 = 2

    package let id: DeviceID
    package let number: DeviceNumber
    /// The greatest fence of a connection that wrote the record; 0 before the first.
    package var fence: UInt64
    package var record: DeviceRecord

    package init(id: DeviceID, number: DeviceNumber, fence: UInt64 = 0, record: DeviceRecord = DeviceRecord()) {
        self.id = id
        self.number = number
        self.fence = fence
        self.record = record
    }

    /// Without a readable session, the device subscribes again.
    package init(fields: inout RecordReader) throws(RecordError) {
        let flags = try fields.flags(known: DeviceLogRecord.savesPower | DeviceLogRecord.hasSession)
        number = DeviceNumber(try fields.integer())
        fence = try fields.integer()
        id = try fields.valid(DeviceID(fields.text()))
        record = DeviceRecord(isSavingPower: flags & DeviceLogRecord.savesPower != 0)
        guard flags & DeviceLogRecord.hasSession != 0 else { return }
        record.session = SessionRecord(text: String(decoding: fields.rest(), as: UTF8.self))
    }

    package func write(to fields: inout RecordWriter) {
        let session = record.session?.text
        fields.integer(
            (record.isSavingPower ? DeviceLogRecord.savesPower : 0) | (session == nil ? 0 : DeviceLogRecord.hasSession)
        )
        fields.integer(number.value)
        fields.integer(fence)
        fields.text(id.name)
        if let session { fields.rest(session.utf8) }
    }
}
