import HeraldModel
import NIOCore

/// The effects of drills, and of overload, on one request; a class, because most requests have none.
final class RequestDrill {
    /// The accepted notification whose answer is withheld, for the journal.
    var withholds: Notification?
    /// How its stream is reset in place of that answer; nil if it stays open.
    var reset: StreamReset?
    /// The notification whose payload asks for a drill without effect, for the journal once it is accepted.
    var unheeded: Notification?
    /// The answer is not sent before this time.
    var answerAt = NIODeadline.uptimeNanoseconds(0)
}

/// Replies that a drill or overload delays; at most one per pending request.
struct DelayedReplies {
    private struct Entry {
        let number: UInt64
        let reply: Reply
        let due: NIODeadline
    }

    /// The time for which a refusal for overload is held back, and its `retry-after`, in seconds.
    static let overloadSeconds = 1
    /// The precision of that time: refusals that are due at about the same time are sent together.
    private static let step = UInt64(100_000_000)

    /// In the order in which they are due: overload may delay as many as a connection has streams.
    private var entries = CircularBuffer<Entry>()
    /// Whether replies may still be delayed; the service's stop waits for none.
    var isEnabled = true

    /// When a refusal for overload is sent.
    static func due(after now: NIODeadline) -> NIODeadline {
        let due = (now + .seconds(Int64(overloadSeconds))).uptimeNanoseconds
        return .uptimeNanoseconds((due / step + 1) * step)
    }

    /// When the next reply is due.
    var nextDue: NIODeadline? { entries.first?.due }

    mutating func add(_ reply: Reply, to number: UInt64, due: NIODeadline) {
        // Mostly the last one.
        var index = entries.endIndex
        while index > entries.startIndex, entries[entries.index(before: index)].due > due {
            index = entries.index(before: index)
        }
        entries.insert(Entry(number: number, reply: reply, due: due), at: index)
    }

    mutating func takeDue(_ now: NIODeadline) -> [(number: UInt64, reply: Reply)] {
        let due = entries.prefix { $0.due <= now }.map { ($0.number, $0.reply) }
        entries.removeFirst(due.count)
        return due
    }
}
