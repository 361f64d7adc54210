import Foundation
import HeraldMailbox
import HeraldModel

@testable import HeraldStores

extension FuzzTarget {
    static let stores: [FuzzTarget] = [
        FuzzTarget("journal-rows", upTo: 2048, journalRow),
        FuzzTarget("segments", upTo: 4096, segment),
        FuzzTarget("session-records", upTo: 1024, sessionRecord),
    ]

    /// Rows of the journal, with a right checksum and with a wrong one.
    @Sendable
    private static func journalRow(_ content: [UInt8]) {
        var sum = Checksum()
        content.withUnsafeBytes { sum.add($0) }
        let row = content + withUnsafeBytes(of: sum.value.littleEndian) { Array($0) }
        var events: [JournalEvent] = []
        let isWhole = row.withUnsafeBytes { JournalRow.read($0) { events.append($0) } }
        check(events.count * 3 <= content.count, "an event of less than three bytes")
        check(!isWhole || !events.isEmpty, "a row without events is whole")
        var damaged = row
        damaged[content.isEmpty ? 0 : content.count / 2] ^= 0x10
        check(!damaged.withUnsafeBytes { JournalRow.read($0) { _ in } }, "a damaged row is whole")
        _ = content.withUnsafeBytes { JournalRow.read($0) { _ in } }
        var again = JournalRow()
        for event in events where event.subscriberCount == nil { again.append(event) }
        var reread: [JournalEvent] = []
        guard again.count > 0 else { return }
        check(again.bytes.withUnsafeBytes { JournalRow.read($0) { reread.append($0) } }, "a written row is not whole")
        check(reread == events.filter { $0.subscriberCount == nil }, "events are not read as they were written")
        if let first = reread.first {
            check(again.bytes.withUnsafeBytes { JournalRow.mayContain(first.id, $0) }, "a search misses an event")
        }
    }

    /// Segments of any bytes; and written ones, of which bytes are changed: a damaged notification is not read.
    @Sendable
    private static func segment(_ bytes: [UInt8]) {
        let headerBytes = min(Int(bytes.first ?? 0) % 4 * NotificationHeader.byteCount, bytes.count)
        read(headers: Array(bytes.prefix(headerBytes)), bodies: Array(bytes.dropFirst(headerBytes)), written: nil)

        var builder = SegmentBuilder()
        var written: [HeraldModel.Notification] = []
        var rest = bytes[...]
        while let notification = notification(&rest), !builder.isFull(for: notification.payload.count + 64) {
            builder.append(notification, sequence: UInt64(written.count))
            written.append(notification)
        }
        guard !written.isEmpty else { return }
        var headers = builder.headers.withUnsafeBytes { Array($0) }
        var bodies = builder.bodies
        read(headers: headers, bodies: bodies, written: written, isWhole: true)
        for (index, byte) in bytes.suffix(4).enumerated() where byte != 0 {
            let place = Int(byte) * 37 + index * 11
            if index % 2 == 0 { headers[place % headers.count] ^= byte }
            if index % 2 == 1, !bodies.isEmpty { bodies[place % bodies.count] ^= byte }
        }
        read(headers: headers, bodies: bodies, written: written)
        read(headers: headers, bodies: Array(bodies.dropLast()), written: written)
        let stored = Int64(bitPattern: bytes.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
        if let tombstones = Tombstones(stored: stored, for: 7) {
            check(tombstones.stored(for: 7) == stored, "tombstones are not read as they were written")
        }
    }

    private static func read(
        headers: [UInt8],
        bodies: [UInt8],
        written: [HeraldModel.Notification]?,
        isWhole: Bool = false
    ) {
        headers.withUnsafeBytes { headers in
            bodies.withUnsafeBytes { bodies in
                guard let segment = Segment(headers: headers, bodies: bodies) else {
                    check(!isWhole, "a written segment is not read")
                    return
                }
                check(!isWhole || segment.isWhole, "a written segment is not whole")
                for index in 0..<segment.count {
                    if segment.isWhole { _ = segment.body(index).count }
                    let notification = segment.notification(index)
                    check(!isWhole || notification != nil, "a written notification is not read")
                    guard let notification, let written else { continue }
                    check(
                        notification.payload == written[index].payload && notification.id == written[index].id
                            && notification.slot == written[index].slot
                            && notification.collapseID == written[index].collapseID,
                        "a damaged notification is read"
                    )
                }
            }
        }
    }

    /// Makes a notification of the next bytes: the first says how many of them are its payload.
    private static func notification(_ rest: inout ArraySlice<UInt8>) -> HeraldModel.Notification? {
        guard rest.count >= 20, let count = rest.popFirst() else { return nil }
        let head = Array(rest.prefix(16))
        rest = rest.dropFirst(16)
        let payload = Array(rest.prefix(Int(count)))
        rest = rest.dropFirst(Int(count))
        func word(_ start: Int) -> UInt64 { head[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) } }
        return HeraldModel.Notification(
            id: NotificationID(high: word(0), low: word(8)),
            uniqueID: NotificationID(high: word(8), low: word(0)),
            slot: Slot(device: DeviceNumber(word(4)), app: AppNumber(UInt32(head[3]))),
            received: WallTime(milliseconds: Int64(bitPattern: word(2))),
            storedUntil: head[5] % 2 == 0 ? nil : WallTime(milliseconds: Int64(bitPattern: word(1) >> 1)),
            priority: Priority.allCases[Int(head[6]) % Priority.allCases.count],
            pushType: PushType.allCases[Int(head[7]) % PushType.allCases.count],
            collapseID: head[8] % 3 == 0 ? CollapseID(String(repeating: "c", count: 1 + Int(head[9]) % 64)) : nil,
            payload: payload
        )
    }

    /// The stored text of sessions.
    @Sendable
    private static func sessionRecord(_ bytes: [UInt8]) {
        guard let record = SessionRecord(text: String(decoding: bytes, as: UTF8.self)) else { return }
        check(SessionRecord(text: record.text) == record, "a session changed")
    }
}
