import HeraldModel

/// Notifications as they lie on disk, some in one row: first what is known of each, in as many bytes for every one of
/// them (``Head``), so that the start reads these alone; then of each, one after the other, its collapse identifier and
/// its payload.
///
/// The row may be gone with the next step of its statement, and a bundle with it.
struct Bundle {
    /// As many as a word of ``Members`` has room for beside its checksum.
    static let memberLimit = 48
    /// A row of so many bytes and a little more fills three pages of 4 KiB.
    ///
    /// More make fewer deaths that need a row of their own, and longer reads of one notification. One that takes more is
    /// alone in its bundle. Rows of any size can be read.
    static let byteLimit = 12_000

    let count: Int
    private let heads: UnsafeRawBufferPointer
    private let bodies: UnsafeRawBufferPointer

    /// - Returns: nil if these cannot be the heads of a bundle.
    init?(heads: UnsafeRawBufferPointer, bodies: UnsafeRawBufferPointer) {
        guard let count = Bundle.count(headBytes: heads.count) else { return nil }
        self.count = count
        self.heads = heads
        self.bodies = bodies
    }

    /// How many notifications have heads of so many bytes.
    /// - Returns: nil if no bundle has.
    static func count(headBytes: Int) -> Int? {
        let (count, rest) = headBytes.quotientAndRemainder(dividingBy: Head.byteCount)
        return rest == 0 && (1...memberLimit).contains(count) ? count : nil
    }

    func head(_ position: Int) -> Head { Head(heads, at: position) }

    /// Whether heads and bodies have the lengths that the heads tell, so that it can be taken apart.
    var isWhole: Bool { length(0..<count) == bodies.count }

    /// Collapse identifier and payload of one, in a bundle that is whole.
    func body(_ position: Int) -> UnsafeRawBufferPointer {
        let start = length(0..<position)
        return UnsafeRawBufferPointer(rebasing: bodies[start..<start + head(position).bodyLength])
    }

    /// The notification at a position.
    ///
    /// Where it begins follows from the lengths of those before it, and as well from those of the ones after it: so it is
    /// found although another is damaged. Its own checksum tells whether it was.
    /// - Returns: nil if it is not what was written.
    func notification(_ position: Int) -> Notification? {
        let head = head(position)
        guard head.isSound else { return nil }
        return notification(head, from: length(0..<position))
            ?? notification(head, from: bodies.count - length(position + 1..<count) - head.bodyLength)
    }

    private func notification(_ head: Head, from start: Int) -> Notification? {
        guard start >= 0, start + head.bodyLength <= bodies.count else { return nil }
        return head.notification(UnsafeRawBufferPointer(rebasing: bodies[start..<start + head.bodyLength]))
    }

    /// How long the bodies of some are, as their heads say.
    private func length(_ positions: Range<Int>) -> Int {
        var length = 0
        for position in positions { length += head(position).bodyLength }
        return length
    }
}

/// What is known of a notification in a bundle without its payload: words of eight bytes, little-endian.
///
/// Never change it.
///
/// | word | holds |
/// |---|---|
/// | 0 | sequence |
/// | 1 | device number |
/// | 2 | app number × 2³², plus the length of the collapse identifier (0 if there is none) × 2¹⁶, plus priority × 2⁸, plus kind |
/// | 3, 4 | the provider's identifier |
/// | 5, 6 | the service's identifier |
/// | 7 | when it was received, milliseconds since 1970 |
/// | 8 | until when it is stored, likewise; the greatest number if for ever |
/// | 9 | a check of the head × 2³², plus the payload's length |
/// | 10 | checksum of the notification |
///
/// The check is the upper half of a checksum over the other words and the payload's length: the start reads heads alone,
/// and what it takes from them it must be able to trust.
struct Head {
    static let wordCount = 11
    static let byteCount = wordCount * 8

    let sequence: UInt64
    let device: UInt64
    let mixed: UInt64
    let id: NotificationID
    let uniqueID: NotificationID
    let received: Int64
    let storedUntil: Int64
    let payloadLength: UInt32
    let checksum: UInt64
    private var check: UInt32 = 0

    init(
        sequence: UInt64,
        slot: Slot,
        collapseLength: Int,
        priority: UInt8,
        pushType: UInt8,
        id: NotificationID,
        uniqueID: NotificationID,
        received: Int64,
        storedUntil: Int64?,
        payloadLength: Int,
        checksum: UInt64
    ) {
        self.sequence = sequence
        device = slot.device.value
        let kind = UInt64(priority) << 8 | UInt64(pushType)
        mixed = UInt64(slot.app.value) << 32 | UInt64(collapseLength) << 16 | kind
        self.id = id
        self.uniqueID = uniqueID
        self.received = received
        self.storedUntil = storedUntil ?? .max
        self.payloadLength = UInt32(clamping: payloadLength)
        self.checksum = checksum
        check = soundCheck
    }

    init(_ notification: Notification, sequence: UInt64) {
        self.init(
            sequence: sequence,
            slot: notification.slot,
            collapseLength: notification.collapseID?.utf8.count ?? 0,
            priority: notification.priority.rawValue,
            pushType: notification.pushType.storedCode,
            id: notification.id,
            uniqueID: notification.uniqueID,
            received: notification.received.milliseconds,
            storedUntil: notification.storedUntil?.milliseconds,
            payloadLength: notification.payload.count,
            checksum: Head.checksum(notification, sequence: sequence)
        )
    }

    /// Reads the head at a position, which must be there.
    init(_ bytes: UnsafeRawBufferPointer, at position: Int) {
        let start = position * Head.byteCount
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

    /// Appends its words as they were made or read.
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

    /// Whether it is what was written.
    var isSound: Bool { check == soundCheck }

    /// Makes it one that is not believed, since its notification was damaged before.
    mutating func markDamaged() {
        check = ~soundCheck
    }

    private var soundCheck: UInt32 {
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

    var collapseLength: Int { Int(mixed >> 16 & 0xFFFF) }

    /// Of collapse identifier and payload; bounded, so that damaged ones can be added up.
    var bodyLength: Int { collapseLength + Int(payloadLength) }

    /// The notification of this head, with a body as long as it says.
    /// - Returns: nil if it is not what was written.
    func notification(_ body: UnsafeRawBufferPointer) -> Notification? {
        guard let priority = Priority(rawValue: UInt8(truncatingIfNeeded: mixed >> 8)),
            let pushType = PushType(storedCode: UInt8(truncatingIfNeeded: mixed))
        else { return nil }
        let notification = Notification(
            id: id,
            uniqueID: uniqueID,
            slot: slot,
            received: WallTime(milliseconds: received),
            storedUntil: storedUntil == .max ? nil : WallTime(milliseconds: storedUntil),
            priority: priority,
            pushType: pushType,
            collapseID: collapseLength == 0 ? nil : String(decoding: body.prefix(collapseLength), as: UTF8.self),
            payload: Array(body.dropFirst(collapseLength))
        )
        return Head.checksum(notification, sequence: sequence) == checksum ? notification : nil
    }

    /// Over all that is stored of a notification.
    static func checksum(_ notification: Notification, sequence: UInt64) -> UInt64 {
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
        if var collapseID = notification.collapseID { collapseID.withUTF8 { sum.add(UnsafeRawBufferPointer($0)) } }
        notification.payload.withUnsafeBytes { sum.add($0) }
        return sum.value
    }
}
