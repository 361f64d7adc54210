import HeraldMailbox
import HeraldModel

/// The notifications of one binary connection that are in flight, in order of arrival.
///
/// The interface answers once, for all notifications: the one that the answer names failed first, and all before it were
/// accepted. So the answer waits until everything before the failed notification is settled.
///
/// A value without a clock or a channel.
struct InFlightNotifications {
    /// How an error response can refer to a notification.
    struct Reference: Equatable {
        /// The provider's identifier; nil if it gave none.
        let identifier: UInt32?
        /// Whether its form has error responses.
        let isAnswered: Bool
    }

    /// A posted notification, for the line about its refusal.
    struct Posted: Equatable {
        let id: NotificationID
        let slot: Slot
        let request: JournalRequest

        init(_ notification: Notification) {
            id = notification.id
            slot = notification.slot
            request = JournalRequest(notification)
        }
    }

    /// The first notification that failed.
    struct Failure: Equatable {
        let reference: Reference
        let status: BinaryStatus
    }

    private enum Outcome {
        case open
        case accepted
        case refused(BinaryStatus)
    }

    private struct Entry {
        let reference: Reference
        var outcome: Outcome
        var posted: Posted?
    }

    private let limit: Int
    private var entries: [Entry] = []
    /// The index in ``entries`` of the oldest that is not settled, and its number.
    private var head = 0
    private var headNumber: UInt64 = 0
    /// Whether one was refused; no further ones are accepted then.
    private(set) var hasRefused = false
    /// The first failure; nil until everything before it is accepted.
    private(set) var failure: Failure?
    /// The identifier of the last accepted notification with nothing open before it.
    private(set) var lastAccepted: UInt32?

    init(limit: Int) {
        self.limit = limit
    }

    /// The number that is open or waits for an earlier one.
    var count: Int { entries.count - head }

    /// Whether another notification may be added.
    var hasRoom: Bool { count < limit && !hasRefused }

    /// The error response of a connection that ends with notifications in flight: names the last accepted one.
    ///
    /// If none was accepted, that status has no true identifier, and no response would mean that all were accepted. So the
    /// first open one counts as failed. Herald may still deliver it; its sender sends it again.
    var finalStatus: (BinaryStatus, identifier: UInt32)? {
        if let lastAccepted { return (.shutdown, lastAccepted) }
        guard count > 0, entries[head].reference.isAnswered else { return nil }
        if let failure { return (failure.status, failure.reference.identifier ?? 0) }
        return (.processingError, entries[head].reference.identifier ?? 0)
    }

    /// The number of the notification that is added next.
    var nextNumber: UInt64 { headNumber + UInt64(count) }

    /// Adds a notification that is settled later; ``nextNumber`` was its number.
    mutating func open(_ reference: Reference) {
        entries.append(Entry(reference: reference, outcome: .open))
    }

    /// Adds a refused notification, the last one.
    mutating func refuse(_ reference: Reference, _ status: BinaryStatus) {
        hasRefused = true
        entries.append(Entry(reference: reference, outcome: .refused(status)))
        advance()
    }

    /// Remembers that an open notification was posted.
    mutating func note(_ number: UInt64, posted: Posted) {
        guard let index = index(number) else { return }
        entries[index].posted = posted
    }

    /// The notification that was posted with a number; nil if none was, or all before it and itself are settled.
    func posted(_ number: UInt64) -> Posted? {
        index(number).flatMap { entries[$0].posted }
    }

    private func index(_ number: UInt64) -> Int? {
        guard number >= headNumber, number - headNumber < UInt64(count) else { return nil }
        return head + Int(number - headNumber)
    }

    /// Settles a notification; without a status it is accepted.
    /// - Returns: Whether a notification with that number was open.
    @discardableResult
    mutating func settle(_ number: UInt64, refusedWith status: BinaryStatus? = nil) -> Bool {
        guard let index = index(number), case .open = entries[index].outcome else { return false }
        if let status {
            hasRefused = true
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
                failure = Failure(reference: entries[head].reference, status: status)
                break loop
            case .accepted:
                lastAccepted = entries[head].reference.identifier ?? lastAccepted
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
