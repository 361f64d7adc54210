import HeraldModel

/// The notifications of one connection that are in the post office's hands, in the order in which they came.
///
/// The interface answers once, and that one answer speaks for all: the notification that it names is the first that
/// failed, and all before it are accepted. So nothing is said about a notification until everything before it is settled.
///
/// A value without a clock or a channel.
struct BinaryWindow {
    /// A notification, as far as its sender can be told of it.
    struct Origin: Equatable {
        /// The provider's own; nil if it gave none.
        let identifier: UInt32?
        /// Whether its form knows error responses.
        let isAnswered: Bool
    }

    /// The first that failed.
    struct Failure: Equatable {
        let origin: Origin
        let status: BinaryStatus
    }

    private enum Outcome {
        case open
        case accepted
        case refused(BinaryStatus)
    }

    private struct Entry {
        let origin: Origin
        var outcome: Outcome
    }

    private let limit: Int
    private var entries: [Entry] = []
    /// Where the oldest that is not settled stands in ``entries``, and its number.
    private var head = 0
    private var headNumber: UInt64 = 0
    /// Whether anything was refused: from then on nothing is taken.
    private(set) var isBroken = false
    /// Set once everything before it is accepted.
    private(set) var failure: Failure?
    /// The identifier of the last of those that are accepted, and before which nothing is open.
    private(set) var lastAccepted: UInt32?

    /// - Parameter limit: How many may be open at one time.
    init(limit: Int) {
        self.limit = limit
    }

    /// How many are open, or wait for one before them.
    var count: Int { entries.count - head }

    /// Whether another one may be taken.
    var hasRoom: Bool { count < limit && !isBroken }

    /// The last word of a connection that ends whatever is open still: the last that was accepted.
    ///
    /// If there is none, no identifier would be true beside that status, and silence would say that all of it was accepted:
    /// so the first that is open counts as failed. It may be delivered all the same; its sender sends it again.
    var farewell: (BinaryStatus, identifier: UInt32)? {
        if let lastAccepted { return (.shutdown, lastAccepted) }
        guard count > 0, entries[head].origin.isAnswered else { return nil }
        if let failure { return (failure.status, failure.origin.identifier ?? 0) }
        return (.processingError, entries[head].origin.identifier ?? 0)
    }

    /// The number of the notification that is taken next.
    var nextNumber: UInt64 { headNumber + UInt64(count) }

    /// Takes a notification that the post office has; ``nextNumber`` was its number.
    mutating func open(_ origin: Origin) {
        entries.append(Entry(origin: origin, outcome: .open))
    }

    /// Takes a notification that is accepted already.
    mutating func accept(_ origin: Origin) {
        entries.append(Entry(origin: origin, outcome: .accepted))
        advance()
    }

    /// Takes one that is refused: the last.
    mutating func refuse(_ origin: Origin, _ status: BinaryStatus) {
        isBroken = true
        entries.append(Entry(origin: origin, outcome: .refused(status)))
        advance()
    }

    /// The receipt of a notification was settled; nil is acceptance.
    /// - Returns: Whether there is one of that number that was open.
    @discardableResult
    mutating func settle(_ number: UInt64, refusedWith status: BinaryStatus? = nil) -> Bool {
        guard number >= headNumber, number - headNumber < UInt64(count) else { return false }
        let index = head + Int(number - headNumber)
        guard case .open = entries[index].outcome else { return false }
        if let status {
            isBroken = true
            entries[index].outcome = .refused(status)
        } else {
            entries[index].outcome = .accepted
        }
        if index == head { advance() }
        return true
    }

    private mutating func advance() {
        guard failure == nil else { return }
        loop: while head < entries.count {
            switch entries[head].outcome {
            case .open:
                break loop
            case .refused(let status):
                failure = Failure(origin: entries[head].origin, status: status)
                break loop
            case .accepted:
                lastAccepted = entries[head].origin.identifier ?? lastAccepted
                head += 1
                headNumber += 1
            }
        }
        if head == entries.count {
            entries.removeAll(keepingCapacity: true)
            head = 0
        } else if head >= limit {
            entries.removeFirst(head)
            head = 0
        }
    }
}
