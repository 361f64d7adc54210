package import HeraldModel

extension BroadcastChannel: LogRecord {
    package static var kind: StaticString { "channel" }

    package init(fields: inout RecordReader) throws(RecordError) {
        let id = ChannelID(high: try fields.integer(), low: try fields.integer())
        let app = AppNumber(try fields.integer())
        let storage = try fields.valid(MessageStoragePolicy(rawValue: fields.integer()))
        self.init(id: id, app: app, storage: storage, created: try fields.time())
    }

    package func write(to fields: inout RecordWriter) {
        fields.integer(id.high)
        fields.integer(id.low)
        fields.integer(app.value)
        fields.integer(storage.rawValue)
        fields.time(created)
    }
}

extension Broadcast: LogRecord {
    package static var kind: StaticString { "broadcast" }

    private static var expires: UInt8 { 1 }

    package init(fields: inout RecordReader) throws(RecordError) {
        let flags = try fields.flags(known: Broadcast.expires)
        let priority = try fields.valid(Priority(rawValue: fields.integer()))
        let channel = ChannelID(high: try fields.integer(), low: try fields.integer())
        let app = AppNumber(try fields.integer())
        let number: UInt64 = try fields.integer()
        let id = try fields.id()
        let uniqueID = try fields.id()
        let received = try fields.time()
        let storedUntil = flags & Broadcast.expires == 0 ? nil : try fields.time()
        self.init(
            channel: channel,
            app: app,
            number: number,
            id: id,
            uniqueID: uniqueID,
            received: received,
            storedUntil: storedUntil,
            priority: priority,
            payload: fields.rest()
        )
    }

    package func write(to fields: inout RecordWriter) {
        fields.integer(storedUntil == nil ? 0 : Broadcast.expires)
        fields.integer(priority.rawValue)
        fields.integer(channel.high)
        fields.integer(channel.low)
        fields.integer(app.value)
        fields.integer(number)
        fields.id(id)
        fields.id(uniqueID)
        fields.time(received)
        if let storedUntil { fields.time(storedUntil) }
        fields.rest(payload)
    }
}
