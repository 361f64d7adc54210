import HeraldMailbox
import HeraldModel

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Journal events in one row: oldest first, then eight bytes of ``Checksum`` over all of them.
///
/// An event leaves out the fields that are equal to those of the event before it. The events of one notification in one
/// commit (received, stored, the older one replaced) are neighbours, and take some 85 bytes instead of 264.
///
/// The layout is part of the format. Each event has:
///
/// | bytes | content |
/// |---|---|
/// | 1 | state |
/// | 1 | the fields that follow (``Fields``) |
/// | 1 to 10 | time: milliseconds since the event before; in the first event since 1970 |
/// | 8, 1 to 5 | device number (0 for the subscribers of a channel, all bits for nobody), app number |
/// | 16 | the provider's identifier |
/// | 16 | the service's identifier; a refused request left without it has the provider's twice |
/// | 16 | the replacement's identifier; for a broadcast that was sent, its number of devices; nothing for a refusal |
/// | 1 to 3 | sender, of a received or refused request |
/// | 1 | push type and priority (``JournalTraits``), if they are not those of the event before |
/// | 1 to 5 | bytes of payload, of such a request |
/// | 1 or more | the refusal: 0 for that of the refused request before, else reason, 1 for the sandbox, explanation, topic |
///
/// Sender and bytes that a request leaves out are those of the request before. Numbers are base-128 varints, lowest bits first; time
/// differences are signed with zigzag encoding. Device numbers, identifiers and checksum are little-endian; an identifier
/// has its upper eight bytes first. A text has its length in bytes before it.
struct JournalRow {
    private struct Fields: OptionSet {
        let rawValue: UInt8

        static let slot = Fields(rawValue: 1)
        static let id = Fields(rawValue: 2)
        static let uniqueID = Fields(rawValue: 4)
        static let detail = Fields(rawValue: 8)
        /// The notification of the event before is the replacement.
        static let isReplacedByLast = Fields(rawValue: 16)
        static let sender = Fields(rawValue: 32)
        static let traits = Fields(rawValue: 64)
        static let payloadBytes = Fields(rawValue: 128)
    }

    /// The fields that an event takes over from the events before it.
    ///
    /// Plain numbers, and not the events themselves, which cannot be copied without counting a reference.
    private struct Context {
        private(set) var isEmpty = true
        private(set) var time: Int64 = 0
        /// As ``JournalEvent/Recipient/storedNumber``.
        private var device: UInt64 = 0
        private var app = AppNumber(0)
        private var lastID = NotificationID(high: 0, low: 0)
        private var lastUniqueID = NotificationID(high: 0, low: 0)
        private(set) var traits = JournalTraits.none
        private(set) var request: JournalRequest?
        private(set) var refusal: JournalRefusal?

        var slot: (recipient: JournalEvent.Recipient, app: AppNumber)? {
            isEmpty ? nil : (JournalEvent.Recipient(storedNumber: device), app)
        }

        var id: NotificationID? { isEmpty ? nil : lastID }

        /// The service's identifier of an event that leaves it out.
        func uniqueID(_ state: JournalState, _ id: NotificationID) -> NotificationID? {
            if case .refusedByService = state { return id }
            return isEmpty ? nil : lastUniqueID
        }

        func hasApp(_ other: AppNumber) -> Bool { !isEmpty && app.value == other.value }

        func hasRecipient(_ other: UInt64) -> Bool { !isEmpty && device == other }

        func hasID(_ other: NotificationID) -> Bool { !isEmpty && Context.isEqual(lastID, other) }

        func hasUniqueID(of event: JournalEvent) -> Bool {
            if case .refusedByService = event.state { return Context.isEqual(event.id, event.uniqueID) }
            return !isEmpty && Context.isEqual(lastUniqueID, event.uniqueID)
        }

        private static func isEqual(_ left: NotificationID, _ right: NotificationID) -> Bool {
            left.high == right.high && left.low == right.low
        }

        mutating func pass(_ event: JournalEvent) {
            isEmpty = false
            time = event.time.milliseconds
            device = event.recipient.storedNumber
            app = event.app
            lastID = event.id
            lastUniqueID = event.uniqueID
            traits = event.traits
            switch event.state {
            case .received: request = event.request
            case .refusedByService:
                request = event.request
                if let refusal = event.refusal { self.refusal = refusal }
            default: break
            }
        }
    }

    /// The most events in one row, so that a search reads any row quickly.
    static let eventLimit = 4096
    private static let longestEvent = 2 + 10 + 8 + 5 + 3 * 16 + longestRequest + longestRefusal
    private static let longestRequest = 3 + 1 + 5
    private static let longestRefusal = 2 + 2 + JournalRefusal.longestExplanation + 2 + JournalRefusal.longestTopic
    private static let checksumLength = 8

    private(set) var count = 0
    /// The earliest and latest time of the events, milliseconds since 1970.
    var firstTime: Int64 { keys.summary.firstTime }
    var lastTime: Int64 { keys.summary.lastTime }
    /// Content for the digest of its chunk.
    private(set) var keys = JournalKeys()
    /// The encoded events, and room for more.
    private var content: [UInt8] = []
    private var contentCount = 0
    private var context = Context()

    mutating func append(_ event: JournalEvent) {
        let fields = fields(of: event)
        keys.add(
            event,
            isNewSlot: fields.contains(.slot),
            isNewApp: !context.hasApp(event.app),
            isNewSender: fields.contains(.sender),
            isNewID: fields.contains(.id),
            isNewUniqueID: fields.contains(.uniqueID)
        )
        let (start, last) = (contentCount, context.time)
        var isSameRefusal = false
        if case .refusedByService = event.state { isSameRefusal = event.refusal == context.refusal }
        if content.count < start + JournalRow.longestEvent {
            content.append(contentsOf: repeatElement(0, count: max(start, JournalRow.longestEvent)))
        }
        contentCount = content.withUnsafeMutableBytes { room in
            var writer = JournalEventWriter(room, from: start)
            JournalRow.write(event, fields, after: last, isSameRefusal: isSameRefusal, to: &writer)
            return writer.end
        }
        count += 1
        context.pass(event)
    }

    private static func write(
        _ event: JournalEvent,
        _ fields: Fields,
        after last: Int64,
        isSameRefusal: Bool,
        to writer: inout JournalEventWriter
    ) {
        writer.add(byte: event.state.rawValue)
        writer.add(byte: fields.rawValue)
        writer.add(difference: event.time.milliseconds &- last)
        if fields.contains(.slot) {
            writer.add(word: event.recipient.storedNumber)
            writer.add(number: UInt64(event.app.value))
        }
        if fields.contains(.id) { writer.add(event.id) }
        if fields.contains(.uniqueID) { writer.add(event.uniqueID) }
        if fields.contains(.detail), let detail = event.detail { writer.add(detail) }
        if fields.contains(.sender), let request = event.request { writer.add(number: UInt64(request.sender.value)) }
        if fields.contains(.traits) { writer.add(byte: event.traits.rawValue) }
        if fields.contains(.payloadBytes), let request = event.request {
            writer.add(number: UInt64(request.payloadBytes))
        }
        guard case .refusedByService = event.state, let refusal = event.refusal else { return }
        writer.add(isSameRefusal ? nil : refusal)
    }

    /// The fields that differ from those of the event before, and of the request before.
    private func fields(of event: JournalEvent) -> Fields {
        var fields: Fields = []
        if !context.hasApp(event.app) || !context.hasRecipient(event.recipient.storedNumber) { fields.insert(.slot) }
        if !context.hasID(event.id) { fields.insert(.id) }
        if !context.hasUniqueID(of: event) { fields.insert(.uniqueID) }
        switch event.detail {
        case nil: break
        case .replacement(let newer): fields.insert(context.hasID(newer) ? .isReplacedByLast : .detail)
        case .subscriberCount, .refusal: fields.insert(.detail)
        }
        if event.traits.rawValue != context.traits.rawValue { fields.insert(.traits) }
        guard let request = event.request else { return fields }
        if request.sender.value != context.request?.sender.value { fields.insert(.sender) }
        if request.payloadBytes != context.request?.payloadBytes { fields.insert(.payloadBytes) }
        return fields
    }

    /// The stored form.
    var bytes: [UInt8] {
        content.withUnsafeBytes { room in
            let content = UnsafeRawBufferPointer(rebasing: room[..<contentCount])
            return Array(unsafeUninitializedCapacity: contentCount + JournalRow.checksumLength) { bytes, count in
                let stored = UnsafeMutableRawBufferPointer(bytes)
                stored.copyMemory(from: content)
                let sum = JournalRow.checksum(content).littleEndian
                stored.storeBytes(of: sum, toByteOffset: contentCount, as: UInt64.self)
                count = contentCount + JournalRow.checksumLength
            }
        }
    }

    /// Whether a row may have events of a notification: the first event with an identifier has all its bytes.
    ///
    /// A search decodes only such rows. The comparison runs where the first byte matches: at one byte in 256, if
    /// identifiers are random.
    static func mayContain(_ id: NotificationID, _ bytes: UnsafeRawBufferPointer) -> Bool {
        withUnsafeBytes(of: (id.high.littleEndian, id.low.littleEndian)) { mayContain($0, bytes) }
    }

    /// Whether a row may have events of a device: the first one has the bytes of the device number.
    static func mayContain(_ device: DeviceNumber, _ bytes: UnsafeRawBufferPointer) -> Bool {
        withUnsafeBytes(of: device.value.littleEndian) { mayContain($0, bytes) }
    }

    private static func mayContain(_ pattern: UnsafeRawBufferPointer, _ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let wanted = pattern.baseAddress, var start = bytes.baseAddress else { return false }
        let end = start + bytes.count
        while end - start >= pattern.count {
            guard let next = memchr(start, CInt(pattern[0]), end - start - pattern.count + 1) else {
                return false
            }
            if memcmp(next, wanted, pattern.count) == 0 { return true }
            start = UnsafeRawPointer(next) + 1
        }
        return false
    }

    /// Decodes the events of a row, oldest first; none if the checksum is wrong.
    /// - Returns: Whether the whole row is valid.
    static func read(_ bytes: UnsafeRawBufferPointer, _ body: (JournalEvent) -> Void) -> Bool {
        guard bytes.count > checksumLength else { return false }
        let content = UnsafeRawBufferPointer(rebasing: bytes.dropLast(checksumLength))
        let sum = bytes.loadUnaligned(fromByteOffset: content.count, as: UInt64.self)
        guard UInt64(littleEndian: sum) == checksum(content) else { return false }
        var reader = JournalEventReader(content)
        var context = Context()
        while !reader.isAtEnd {
            guard let event = event(&reader, in: context) else { return false }
            body(event)
            context.pass(event)
        }
        return true
    }

    private static func event(_ reader: inout JournalEventReader, in context: Context) -> JournalEvent? {
        guard let state = reader.byte().flatMap(JournalState.init(rawValue:)),
            let fields = reader.byte().map(Fields.init(rawValue:)),
            let difference = reader.difference(),
            let slot = fields.contains(.slot) ? reader.slot() : context.slot,
            let id = fields.contains(.id) ? reader.id() : context.id,
            let uniqueID = fields.contains(.uniqueID) ? reader.id() : context.uniqueID(state, id)
        else { return nil }
        let hasRefusal = state == .refusedByService && fields.contains(.detail)
        let other: NotificationID? =
            if fields.contains(.detail), !hasRefusal {
                reader.id()
            } else {
                fields.contains(.isReplacedByLast) ? context.id : nil
            }
        guard other != nil || hasRefusal || fields.isDisjoint(with: [.detail, .isReplacedByLast]) else { return nil }
        var detail: JournalEvent.Detail? = other.map {
            state == .sentToSubscribers ? .subscriberCount($0.low) : .replacement($0)
        }
        guard let facts = request(&reader, fields, of: state, in: context) else { return nil }
        if hasRefusal {
            guard let refusal = reader.refusal(after: context.refusal) else { return nil }
            detail = .refusal(refusal)
        }
        return JournalEvent(
            time: WallTime(milliseconds: context.time &+ difference),
            id: id,
            uniqueID: uniqueID,
            recipient: slot.recipient,
            app: slot.app,
            state: state,
            detail: detail,
            request: facts.request,
            traits: facts.traits
        )
    }

    /// - Returns: nil if the bytes are invalid.
    private static func request(
        _ reader: inout JournalEventReader,
        _ fields: Fields,
        of state: JournalState,
        in context: Context
    ) -> (request: JournalRequest?, traits: JournalTraits)? {
        var (sender, traits, payloadBytes) = (context.request?.sender, context.traits, context.request?.payloadBytes)
        if fields.contains(.sender) {
            guard let number = reader.number().flatMap(UInt16.init(exactly:)) else { return nil }
            sender = SenderNumber(number)
        }
        if fields.contains(.traits) {
            guard let byte = reader.byte().flatMap(JournalTraits.init(rawValue:)) else { return nil }
            traits = byte
        }
        if fields.contains(.payloadBytes) {
            guard let number = reader.number().flatMap(UInt32.init(exactly:)) else { return nil }
            payloadBytes = number
        }
        guard state.isOfRequest, traits != .none else {
            return fields.isDisjoint(with: [.sender, .payloadBytes]) ? (nil, traits) : nil
        }
        guard let sender, let payloadBytes else { return nil }
        let request = JournalRequest(
            sender: sender,
            pushType: traits.pushType,
            priority: traits.priority,
            payloadBytes: Int(payloadBytes)
        )
        return (request, traits)
    }

    private static func checksum(_ content: UnsafeRawBufferPointer) -> UInt64 {
        var sum = Checksum()
        sum.add(content)
        return sum.value
    }
}
