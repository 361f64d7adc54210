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

/// A broadcast, and the node that accepted it; its number is its sequence in the log.
package struct BroadcastRecord: LogRecord, Hashable {
    package static let kind: StaticString = "broadcast"

    private static let expires: UInt8 = 1

    package let node: NodeName
    /// Without its number.
    package let broadcast: Broadcast

    package init(node: NodeName, broadcast: Broadcast) {
        self.node = node
        self.broadcast = broadcast
    }

    package init(fields: inout RecordReader) throws(RecordError) {
        let flags = try fields.flags(known: BroadcastRecord.expires)
        node = try fields.valid(NodeName(fields.text()))
        let priority = try fields.valid(Priority(rawValue: fields.integer()))
        let channel = ChannelID(high: try fields.integer(), low: try fields.integer())
        let app = AppNumber(try fields.integer())
        let id = try fields.id()
        let uniqueID = try fields.id()
        let received = try fields.time()
        let storedUntil = flags & BroadcastRecord.expires == 0 ? nil : try fields.time()
        broadcast = Broadcast(
            channel: channel,
            app: app,
            number: 0,
            id: id,
            uniqueID: uniqueID,
            received: received,
            storedUntil: storedUntil,
            priority: priority,
            payload: fields.rest()
        )
    }

    package func write(to fields: inout RecordWriter) {
        fields.integer(broadcast.storedUntil == nil ? 0 : BroadcastRecord.expires)
        fields.text(node.text)
        fields.integer(broadcast.priority.rawValue)
        fields.integer(broadcast.channel.high)
        fields.integer(broadcast.channel.low)
        fields.integer(broadcast.app.value)
        fields.id(broadcast.id)
        fields.id(broadcast.uniqueID)
        fields.time(broadcast.received)
        if let storedUntil = broadcast.storedUntil { fields.time(storedUntil) }
        fields.rest(broadcast.payload)
    }
}
