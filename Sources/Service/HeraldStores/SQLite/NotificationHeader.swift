import HeraldMailbox
import HeraldModel

/// The fixed-size part of a stored notification, without its payload: words of eight bytes, little-endian.
///
/// The layout is part of the format.
///
/// | word | content |
/// |---|---|
/// | 0 | sequence |
/// | 1 | device number |
/// | 2 | app number × 2³², plus the length of the collapse identifier (0 without one) × 2¹⁶, plus priority × 2⁸, plus push type |
/// | 3, 4 | the provider's identifier |
/// | 5, 6 | the service's identifier |
/// | 7 | time of receipt, milliseconds since 1970 |
/// | 8 | end of storage, likewise; the greatest number if unlimited |
/// | 9 | header check × 2³², plus the payload's length |
/// | 10 | checksum of the notification |
///
/// The header check is the upper half of a checksum over the other words and the payload's length. The start reads headers
/// alone and must be able to trust them.
struct NotificationHeader {
    static let wordCount = 11
    static let byteCount = wordCount * 8

    let sequence: UInt64
    let id: NotificationID
    let uniqueID: NotificationID
    let storedUntil: Int64
    private let device: UInt64
    private let mixed: UInt64
    private let received: Int64
    private let payloadLength: UInt32
    private let checksum: UInt64
    private var check: UInt32 = 0

    init(_ notification: Notification, sequence: UInt64) {
        self.sequence = sequence
        device = notification.slot.device.value
        let kind = UInt64(notification.priority.rawValue) << 8 | UInt64(notification.pushType.storedCode)
        let collapseLength = notification.collapseID?.text.utf8.count ?? 0
        mixed = UInt64(notification.slot.app.value) << 32 | UInt64(collapseLength) << 16 | kind
        id = notification.id
        uniqueID = notification.uniqueID
        received = notification.received.milliseconds
        storedUntil = notification.storedUntil?.milliseconds ?? .max
        payloadLength = UInt32(clamping: notification.payload.count)
        checksum = NotificationHeader.checksum(notification, sequence: sequence)
        check = expectedCheck
    }

    /// Reads the header at an index, which must be within the bytes.
    init(_ bytes: UnsafeRawBufferPointer, at index: Int) {
        let start = index * NotificationHeader.byteCount
        func word(_ number: Int) -> UInt64 {
            UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: start + number * 8, as: UInt64.self))
        }
        sequence = word(0)
        device = word(1)
        mixed = word(2)
        id = NotificationID(high: word(3), low: word(4))
        uniqueID = NotificationID(high: word(5), low: word(6))
        received = Int64(bitPattern: word(7))
        storedUntil = Int64(bitPattern: word(8))
        payloadLength = UInt32(truncatingIfNeeded: word(9))
        checksum = word(10)
        check = UInt32(word(9) >> 32)
    }

    /// Appends the words, as they were made or read.
    func append(to words: inout [UInt64]) {
        words.append(sequence.littleEndian)
        words.append(device.littleEndian)
        words.append(mixed.littleEndian)
        words.append(id.high.littleEndian)
        words.append(id.low.littleEndian)
        words.append(uniqueID.high.littleEndian)
        words.append(uniqueID.low.littleEndian)
        words.append(UInt64(bitPattern: received).littleEndian)
        words.append(UInt64(bitPattern: storedUntil).littleEndian)
        words.append((UInt64(check) << 32 | UInt64(payloadLength)).littleEndian)
        words.append(checksum.littleEndian)
    }

    /// Whether the header check is right.
    var isValid: Bool { check == expectedCheck }

    private var expectedCheck: UInt32 {
        var sum = Checksum()
        sum.add(sequence)
        sum.add(device)
        sum.add(mixed)
        sum.add(id.high)
        sum.add(id.low)
        sum.add(uniqueID.high)
        sum.add(uniqueID.low)
        sum.add(UInt64(bitPattern: received))
        sum.add(UInt64(bitPattern: storedUntil))
        sum.add(UInt64(payloadLength))
        sum.add(checksum)
        return UInt32(sum.value >> 32)
    }

    var slot: Slot {
        Slot(device: DeviceNumber(device), app: AppNumber(UInt32(truncatingIfNeeded: mixed >> 32)))
    }

    var traits: JournalTraits {
        JournalTraits(
            pushType: PushType(storedCode: UInt8(truncatingIfNeeded: mixed)),
            priority: Priority(rawValue: UInt8(truncatingIfNeeded: mixed >> 8))
        )
    }

    private var collapseLength: Int { Int(mixed >> 16 & 0xFFFF) }

    /// Length of collapse identifier and payload; bounded, so that lengths of damaged headers can be added up.
    var bodyLength: Int { collapseLength + Int(payloadLength) }

    /// The notification of this header, with a body of ``bodyLength``.
    /// - Returns: nil if the checksum is wrong.
    func notification(_ body: UnsafeRawBufferPointer) -> Notification? {
        guard let priority = Priority(rawValue: UInt8(truncatingIfNeeded: mixed >> 8)),
            let pushType = PushType(storedCode: UInt8(truncatingIfNeeded: mixed))
        else { return nil }
        let collapse = body.prefix(collapseLength)
        let notification = Notification(
            id: id,
            uniqueID: uniqueID,
            slot: slot,
            received: WallTime(milliseconds: received),
            storedUntil: storedUntil == .max ? nil : WallTime(milliseconds: storedUntil),
            priority: priority,
            pushType: pushType,
            // An invalid identifier was never accepted by this version: the notification is delivered without it.
            collapseID: CollapseID(utf8: UnsafeRawBufferPointer(rebasing: collapse)),
            payload: Array(body.dropFirst(collapseLength))
        )
        let sum = NotificationHeader.checksum(notification, collapse: collapse, sequence: sequence)
        return sum == checksum ? notification : nil
    }

    /// Checksum over everything that is stored of a notification.
    private static func checksum(_ notification: Notification, sequence: UInt64) -> UInt64 {
        var text = notification.collapseID?.text ?? ""
        return text.withUTF8 { checksum(notification, collapse: UnsafeRawBufferPointer($0)[...], sequence: sequence) }
    }

    private static func checksum(
        _ notification: Notification,
        collapse: Slice<UnsafeRawBufferPointer>,
        sequence: UInt64
    ) -> UInt64 {
        var sum = Checksum()
        sum.add(sequence)
        sum.add(notification.slot.device.value)
        sum.add(UInt64(notification.slot.app.value))
        sum.add(UInt64(bitPattern: notification.storedUntil?.milliseconds ?? .max))
        sum.add(notification.id.high)
        sum.add(notification.id.low)
        sum.add(notification.uniqueID.high)
        sum.add(notification.uniqueID.low)
        sum.add(UInt64(bitPattern: notification.received.milliseconds))
        sum.add(UInt64(notification.priority.rawValue) << 8 | UInt64(notification.pushType.storedCode))
        if !collapse.isEmpty { sum.add(UnsafeRawBufferPointer(rebasing: collapse)) }
        notification.payload.withUnsafeBytes { sum.add($0) }
        return sum.value
    }
}
