import HeraldModel
import HeraldWire
import NIOCore

/// The unconfirmed notifications of one connection of the binary interface, in the order in which they were written.
///
/// The service answers once, then closes: it names the first notification that it refused. It accepted everything before
/// and discarded everything behind. To confirm notifications the client writes a *checkpoint*, which every service
/// refuses. Silence proves nothing, however long: a slow service looks like one that accepts.
///
/// A value without a clock or a channel.
struct BinaryHistory<Item> {
    /// End of a connection.
    enum Ending {
        case answered(BinaryErrorResponse)
        /// No answer.
        case lost
    }

    /// Outcome of everything written on a connection.
    struct Settlement {
        /// The service accepted these.
        fileprivate(set) var accepted: [Item] = []
        /// The service refused this one.
        fileprivate(set) var refused: (item: Item, status: BinaryStatus)?
        /// The service discarded these; they are resent in this order.
        fileprivate(set) var resend: [Item] = []
        /// The service may have these.
        fileprivate(set) var uncertain: [Item] = []
        /// Whether the answer named the checkpoint.
        fileprivate(set) var namesCheckpoint = false
        /// Whether the answer named an identifier that is not in use.
        fileprivate(set) var namesUnknown = false
    }

    private struct Entry {
        let identifier: UInt32
        let item: Item
        let written: NIODeadline
    }

    private let limit: Int
    private var entries: [Entry] = []
    private var inUse: Set<UInt32> = []
    /// Number of entries that the socket has whole; the service cannot have the end of the others.
    private var flushedCount = 0
    private var lastIdentifier: UInt32
    /// Identifier of the checkpoint, once written; nothing may follow it.
    private(set) var checkpoint: UInt32?

    /// `limit` is the most unconfirmed notifications, `lastIdentifier` the one before the first to assign, for tests.
    init(limit: Int, lastIdentifier: UInt32 = 0) {
        self.limit = limit
        self.lastIdentifier = lastIdentifier
    }

    var count: Int { entries.count }

    var items: some Sequence<Item> { entries.lazy.map(\.item) }

    /// Whether a notification may be written now; a given identifier must not be in use.
    func hasRoom(for identifier: UInt32?) -> Bool {
        guard checkpoint == nil, entries.count < limit else { return false }
        return identifier.map { !inUse.contains($0) } ?? true
    }

    /// Adds a notification; the caller has checked ``hasRoom(for:)``.
    /// - Returns: Its identifier.
    mutating func write(_ item: Item, _ identifier: UInt32?, now: NIODeadline) -> UInt32 {
        let identifier = identifier ?? free()
        inUse.insert(identifier)
        entries.append(Entry(identifier: identifier, item: item, written: now))
        return identifier
    }

    /// Notes that the socket has the first `count` notifications.
    mutating func flushed(_ count: Int) {
        flushedCount = max(flushedCount, min(count, entries.count))
    }

    /// When the checkpoint is due; nil if nothing is unconfirmed or it is already written.
    func checkpointDue(after pause: Duration) -> NIODeadline? {
        guard checkpoint == nil, let oldest = entries.first else { return nil }
        return entries.count >= limit ? oldest.written : oldest.written + TimeAmount(pause)
    }

    /// Notes the checkpoint.
    /// - Returns: Its identifier.
    mutating func writeCheckpoint() -> UInt32 {
        let identifier = free()
        checkpoint = identifier
        return identifier
    }

    /// Decides the outcome of all entries and empties the history.
    mutating func end(_ ending: Ending) -> Settlement {
        var settlement = Settlement()
        switch ending {
        case .answered(let response): settle(response, &settlement)
        case .lost: split(from: 0, &settlement)
        }
        entries.removeAll(keepingCapacity: true)
        inUse.removeAll(keepingCapacity: true)
        flushedCount = 0
        checkpoint = nil
        return settlement
    }

    private func settle(_ response: BinaryErrorResponse, _ settlement: inout Settlement) {
        if response.identifier == checkpoint {
            settlement.namesCheckpoint = true
            settlement.accepted = entries.map(\.item)
            return
        }
        guard let index = entries.firstIndex(where: { $0.identifier == response.identifier }) else {
            settlement.namesUnknown = true
            return split(from: 0, &settlement)
        }
        switch response.status {
        case .shutdown:
            settlement.accepted = entries[...index].map(\.item)
            settlement.resend = entries[(index + 1)...].map(\.item)
        case .noError:
            // The documentation does not define this status in an answer: the entries behind it are in doubt.
            settlement.accepted = entries[...index].map(\.item)
            split(from: index + 1, &settlement)
        default:
            settlement.accepted = entries[..<index].map(\.item)
            settlement.refused = (entries[index].item, response.status)
            settlement.resend = entries[(index + 1)...].map(\.item)
        }
    }

    /// Divides the entries without an answer: in doubt if the socket had them whole, to be resent otherwise.
    private func split(from start: Int, _ settlement: inout Settlement) {
        let middle = max(start, flushedCount)
        settlement.uncertain = entries[start..<middle].map(\.item)
        settlement.resend = entries[middle...].map(\.item)
    }

    /// An identifier that is not in use; never 0, which services return if they could read none.
    private mutating func free() -> UInt32 {
        repeat {
            lastIdentifier &+= 1
        } while lastIdentifier == 0 || inUse.contains(lastIdentifier)
        return lastIdentifier
    }
}
