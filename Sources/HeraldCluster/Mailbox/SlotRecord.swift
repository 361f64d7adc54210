import HeraldMailbox
import HeraldModel
import NIOCore

/// A stored notification as the bytes of a message; the subject has the slot and the generation.
///
/// Version 1, in network byte order: version, push type, priority, whether there is a collapse identifier (a byte each);
/// received and storedUntil in milliseconds; id, unique id (16 bytes each); the length of the collapse identifier (a byte)
/// and the identifier; the payload.
enum SlotRecord {
    private static let version: UInt8 = 1
    /// In the order of their numbers in version 1, which never change.
    private static let pushTypes: [PushType] = [
        .alert, .background, .complication, .controls, .fileprovider, .liveactivity, .location, .mdm, .pushtotalk,
        .voip,
        .widgets,
    ]

    static func encode(_ notification: Notification) -> ByteBuffer {
        var buffer = ByteBuffer()
        let collapseID = notification.collapseID.map { Array($0.utf8) }
        buffer.reserveCapacity(64 + (collapseID?.count ?? 0) + notification.payload.count)
        let pushType = pushTypes.firstIndex(of: notification.pushType) ?? 0
        buffer.writeInteger(version)
        buffer.writeInteger(UInt8(pushType))
        buffer.writeInteger(notification.priority.rawValue)
        buffer.writeInteger(UInt8(collapseID == nil ? 0 : 1))
        buffer.writeInteger(notification.received.milliseconds)
        buffer.writeInteger(notification.storedUntil?.milliseconds ?? .min)
        for id in [notification.id, notification.uniqueID] {
            buffer.writeInteger(id.high)
            buffer.writeInteger(id.low)
        }
        buffer.writeInteger(UInt8(clamping: collapseID?.count ?? 0))
        buffer.writeBytes(collapseID?.prefix(255) ?? [])
        buffer.writeBytes(notification.payload)
        return buffer
    }

    /// - Returns: nil for a tombstone, another version, or bytes that are no record.
    static func decode(_ payload: ByteBuffer, slot: Slot) -> Notification? {
        var buffer = payload
        guard buffer.readInteger(as: UInt8.self) == version,
            let pushType = buffer.readInteger(as: UInt8.self), pushType < pushTypes.count,
            let priority = buffer.readInteger(as: UInt8.self).flatMap(Priority.init),
            let hasCollapseID = buffer.readInteger(as: UInt8.self),
            let received = buffer.readInteger(as: Int64.self),
            let storedUntil = buffer.readInteger(as: Int64.self),
            let id = readID(&buffer), let uniqueID = readID(&buffer),
            let length = buffer.readInteger(as: UInt8.self),
            let collapseID = buffer.readString(length: Int(length)),
            let bytes = buffer.readBytes(length: buffer.readableBytes)
        else { return nil }
        return Notification(
            id: id,
            uniqueID: uniqueID,
            slot: slot,
            received: WallTime(milliseconds: received),
            storedUntil: storedUntil == .min ? nil : WallTime(milliseconds: storedUntil),
            priority: priority,
            pushType: pushTypes[Int(pushType)],
            collapseID: hasCollapseID == 1 ? collapseID : nil,
            payload: bytes
        )
    }

    private static func readID(_ buffer: inout ByteBuffer) -> NotificationID? {
        guard let high = buffer.readInteger(as: UInt64.self), let low = buffer.readInteger(as: UInt64.self) else {
            return nil
        }
        return NotificationID(high: high, low: low)
    }
}
