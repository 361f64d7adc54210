import HeraldModel
import HeraldWire
import NIOCore

/// What was written on one connection of the binary interface and is not settled, in the order in which it was written.
///
/// The service is silent about what it takes. It says one thing, once: which notification was the first that it did not
/// take; and then everything before that one was accepted, and nothing after it was looked at. So nothing is known before
/// the connection ends, and to know it, the connection is ended: a *checkpoint* is a notification that no service can take,
/// and the answer that names it proves that all before it were accepted. Silence alone proves nothing, however long it
/// lasts: a service that is slow looks like one that agrees.
///
/// A value without a clock or a channel.
struct BinaryHistory<Item> {
    /// How a connection ended.
    enum Ending {
        case answered(BinaryErrorResponse)
        /// Without a word.
        case lost
    }

    /// What the end of a connection says about everything that was written on it.
    struct Settlement {
        /// The service has these.
        fileprivate(set) var accepted: [Item] = []
        /// The service does not take this one.
        fileprivate(set) var refused: (item: Item, status: BinaryStatus)?
        /// The service did not look at these: they are sent again, in this order.
        fileprivate(set) var again: [Item] = []
        /// The service may have these, and nobody can say.
        fileprivate(set) var uncertain: [Item] = []
        /// Whether the answer named the checkpoint.
        fileprivate(set) var isOfCheckpoint = false
        /// Whether the answer named nothing that was written here.
        fileprivate(set) var isOfNothing = false
    }

    private struct Entry {
        let identifier: UInt32
        let item: Item
        let written: NIODeadline
    }

    private let limit: Int
    private var entries: [Entry] = []
    private var inUse: Set<UInt32> = []
    /// How many of them left whole; of the others no service can have read the end.
    private var passedOn = 0
    private var lastIdentifier: UInt32
    /// The identifier of the checkpoint, once it is written; nothing is written after it.
    private(set) var checkpoint: UInt32?

    /// - Parameters:
    ///   - limit: How many may be in it at one time.
    ///   - lastIdentifier: After which identifiers are given to those that have none; tests bring their own.
    init(limit: Int, lastIdentifier: UInt32 = 0) {
        self.limit = limit
        self.lastIdentifier = lastIdentifier
    }

    var count: Int { entries.count }

    var items: some Sequence<Item> { entries.lazy.map(\.item) }

    /// Whether a notification may be written now: one whose identifier is in use waits until that one is settled.
    func hasRoom(for identifier: UInt32?) -> Bool {
        guard checkpoint == nil, entries.count < limit else { return false }
        return identifier.map { !inUse.contains($0) } ?? true
    }

    /// Notes that a notification is written; there must be room for it.
    /// - Returns: Its identifier.
    mutating func write(_ item: Item, _ identifier: UInt32?, now: NIODeadline) -> UInt32 {
        let identifier = identifier ?? free()
        inUse.insert(identifier)
        entries.append(Entry(identifier: identifier, item: item, written: now))
        return identifier
    }

    /// Notes that the first so many left whole.
    mutating func pass(_ count: Int) {
        passedOn = max(passedOn, min(count, entries.count))
    }

    /// When the checkpoint is due, if nothing wants it sooner; nil if there is nothing to settle, or it is written.
    func checkpointDue(after pause: Duration) -> NIODeadline? {
        guard checkpoint == nil, let oldest = entries.first else { return nil }
        return entries.count >= limit ? oldest.written : oldest.written + TimeAmount(pause)
    }

    /// Notes that the checkpoint is written.
    /// - Returns: Its identifier.
    mutating func writeCheckpoint() -> UInt32 {
        let identifier = free()
        checkpoint = identifier
        return identifier
    }

    /// Settles everything, and begins anew.
    mutating func end(_ ending: Ending) -> Settlement {
        var settlement = Settlement()
        switch ending {
        case .answered(let response): settle(response, &settlement)
        case .lost: split(from: 0, &settlement)
        }
        entries.removeAll(keepingCapacity: true)
        inUse.removeAll(keepingCapacity: true)
        passedOn = 0
        checkpoint = nil
        return settlement
    }

    private func settle(_ response: BinaryErrorResponse, _ settlement: inout Settlement) {
        if response.identifier == checkpoint {
            settlement.isOfCheckpoint = true
            settlement.accepted = entries.map(\.item)
            return
        }
        guard let index = entries.firstIndex(where: { $0.identifier == response.identifier }) else {
            settlement.isOfNothing = true
            return split(from: 0, &settlement)
        }
        switch response.status {
        case .shutdown:
            settlement.accepted = entries[...index].map(\.item)
            settlement.again = entries[(index + 1)...].map(\.item)
        case .noError:
            // The documents do not say what it means beside an end: of those after it nothing is known.
            settlement.accepted = entries[...index].map(\.item)
            split(from: index + 1, &settlement)
        default:
            settlement.accepted = entries[..<index].map(\.item)
            settlement.refused = (entries[index].item, response.status)
            settlement.again = entries[(index + 1)...].map(\.item)
        }
    }

    /// What nobody said anything about: unknown where it left whole, and certainly not there where it did not.
    private func split(from start: Int, _ settlement: inout Settlement) {
        let middle = max(start, passedOn)
        settlement.uncertain = entries[start..<middle].map(\.item)
        settlement.again = entries[middle...].map(\.item)
    }

    /// An identifier that is not in use; never 0, which services answer where they could read none.
    private mutating func free() -> UInt32 {
        repeat {
            lastIdentifier &+= 1
        } while lastIdentifier == 0 || inUse.contains(lastIdentifier)
        return lastIdentifier
    }
}
