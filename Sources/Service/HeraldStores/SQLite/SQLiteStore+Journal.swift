import GRDB
package import HeraldMailbox
package import HeraldModel
import Logging

extension SQLiteStore: JournalStore {
    package func record(_ events: [JournalEvent]) {
        for event in events { record(event, settling: nil) }
    }

    package func record(_ event: JournalEvent, settling completion: Completion?) {
        guard !queue.append(.record(event, completion)) else { return }
        completion?.settle(.refused(.serviceUnavailable))
    }

    package func recordRefusal(_ event: JournalEvent) -> Bool {
        gate.isOpen && queue.append(.record(event, nil))
    }

    package func lines(matching query: JournalQuery, limit: Int) async throws -> [JournalEvent] {
        try await commitEarlierEvents()
        let search = try await run(JournalSearch(JournalFilter(query), limit: limit))
        return search.found.reversed().map(\.event)
    }

    /// Finds lines, newest first, including all recorded before the call.
    ///
    /// `cursor` is where an earlier page ended; nil for the newest lines. After `budget` the page ends, perhaps without
    /// a line; one step may take longer.
    /// - Throws: ``StoreError``.
    package func search(
        _ filter: JournalFilter,
        from cursor: JournalCursor? = nil,
        limit: Int,
        within budget: Duration
    ) async throws -> JournalPage {
        let deadline = ContinuousClock.now + budget
        if cursor == nil { try await commitEarlierEvents() }
        let search = try await run(JournalSearch(filter, from: cursor ?? .end, limit: limit), until: deadline)
        return JournalPage(lines: search.found, next: search.next, searchedBackTo: search.searchedBackTo)
    }

    /// The times of the oldest line and of the newest one that is on the disk.
    /// - Returns: nil if there are no lines.
    /// - Throws: If the journal cannot be read.
    package func journalSpan() async throws -> (first: WallTime, last: WallTime)? {
        try await readers.read { try JournalTable.span($0) }
    }

    /// The time since which no line has been deleted for its age or for the journal's size.
    /// - Returns: nil if no line has ever been deleted.
    /// - Throws: If the journal cannot be read.
    package func journalCompleteSince() async throws -> WallTime? {
        try await readers.read { try JournalTable.completeSince($0) }
    }

    /// Commits what was recorded before.
    ///
    /// If that fails, the events on disk are still readable.
    private func commitEarlierEvents(withTallies: Bool = false) async throws {
        do {
            try await change { _, batch in if withTallies { batch.wantsTallies = true } }
        } catch let error as StoreError where error != .closed {}
    }

    private func run(
        _ search: JournalSearch,
        until deadline: ContinuousClock.Instant? = nil
    ) async throws -> JournalSearch {
        var search = search
        while !search.isFinished {
            try Task.checkCancellation()
            let current = search
            search = try await readers.read { database in
                var search = current
                try search.step(database)
                return search
            }
            if let deadline, ContinuousClock.now >= deadline { break }
        }
        if search.damagedRows > 0 {
            logger.error(
                "skipped damaged rows of the journal",
                metadata: ["rows": "\(search.damagedRows)"]
            )
        }
        return search
    }

    package func trim(before moment: WallTime, maximumBytes: Int) async throws {
        let slice = configuration.maintenanceSlice
        repeat {
            try Task.checkCancellation()
        } while try await change { [damage] database, _ in
            try JournalTable.trim(
                database,
                before: moment,
                maximumBytes: maximumBytes,
                limit: slice,
                damage: damage
            )
        } == slice
    }

    /// Numbers of journal lines by hour and group, with all lines that were recorded before the call.
    /// - Parameters:
    ///   - hours: Hours since 1970; those that are too old have no counts.
    ///   - group: The group of lines; nil for lines that are not wanted.
    /// - Returns: The numbers of each hour that has lines.
    /// - Throws: ``StoreError``.
    package func tallies<Group: Hashable & Sendable>(
        in hours: Range<Int64>,
        by group: @escaping @Sendable (TallyKey) -> Group?
    ) async throws -> [Int64: [Group: Int]] {
        try await commitEarlierEvents(withTallies: true)
        var counts: [Int64: [Group: Int]] = [:]
        var first = hours.lowerBound
        while first < hours.upperBound {
            try Task.checkCancellation()
            let slice = first..<min(first + TallyTable.hoursPerRead, hours.upperBound)
            let found = try await readers.read { database in
                var found: [Int64: [Group: Int]] = [:]
                try TallyTable.read(database, hours: slice) { key, count in
                    guard let group = group(key) else { return }
                    found[key.hour, default: [:]][group, default: 0] &+= count
                }
                return found
            }
            counts.merge(found) { $1 }
            first = slice.upperBound
        }
        return counts
    }
}
