package import HeraldMailbox
package import HeraldModel

/// A place in the journal, from which a search goes on to older lines.
package struct JournalCursor: Hashable, Sendable, LosslessStringConvertible {
    /// Rows before this position are still to be read.
    let before: Int64
    /// The number of events of the row just before that are still to be read; nil for all.
    let events: Int?

    init(before: Int64, events: Int? = nil) {
        self.before = before
        self.events = events
    }

    /// The newest line.
    static let end = JournalCursor(before: .max)

    /// Reads what ``description`` wrote.
    package init?(_ description: String) {
        let parts = description.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count <= 2, let first = parts.first, let before = Int64(first), before >= 0 else { return nil }
        self.before = before
        guard parts.count == 2 else {
            events = nil
            return
        }
        guard let events = Int(parts[1]), (0...JournalRow.eventLimit).contains(events) else { return nil }
        self.events = events
    }

    package var description: String { events.map { "\(before)-\($0)" } ?? "\(before)" }
}

/// A part of a search's lines.
package struct JournalPage: Sendable {
    /// A line, and the place after it.
    package struct Line: Sendable {
        package let event: JournalEvent
        package let next: JournalCursor
    }

    /// Newest first.
    package let lines: [Line]
    /// The place from which the search goes on; nil if it has read all.
    package let next: JournalCursor?
    /// The earliest time that it has come to; nil if it has read nothing.
    package let searchedBackTo: WallTime?
}
