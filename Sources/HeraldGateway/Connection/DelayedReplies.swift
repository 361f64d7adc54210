import HeraldModel
import NIOCore

/// The effects of drills on one request.
struct RequestDrill {
    /// The accepted notification whose answer is withheld, for the journal.
    var withholds: Notification?
    /// The notification whose payload asks for a drill in vain, for the journal once it is accepted.
    var unheeded: Notification?
    /// The answer is not sent before this time.
    var answerAt = NIODeadline.uptimeNanoseconds(0)
}

/// Replies that drills delay; at most one per pending request.
struct DelayedReplies {
    private struct Entry {
        let number: UInt64
        let reply: Reply
        let due: NIODeadline
    }

    private var entries: [Entry] = []
    /// Whether replies may still be delayed; the service's stop waits for no drill.
    var isEnabled = true

    /// When the next reply is due.
    var nextDue: NIODeadline? { entries.lazy.map(\.due).min() }

    mutating func add(_ reply: Reply, to number: UInt64, due: NIODeadline) {
        entries.append(Entry(number: number, reply: reply, due: due))
    }

    /// Removes the replies that are due.
    mutating func takeDue(_ now: NIODeadline) -> [(number: UInt64, reply: Reply)] {
        guard !entries.isEmpty else { return [] }
        let due = entries.filter { $0.due <= now }
        entries.removeAll { $0.due <= now }
        return due.map { ($0.number, $0.reply) }
    }
}
