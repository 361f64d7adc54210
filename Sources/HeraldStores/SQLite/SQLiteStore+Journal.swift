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
        // Commits earlier events first. If that fails, the events on disk are still readable.
        do { try await change { _, _ in } } catch let error as StoreError where error != .closed {}
        var search = JournalSearch(query: query, limit: limit)
        while !search.isFinished {
            let current = search
            search = try await readers.read { database in
                var search = current
                try search.step(database)
                return search
            }
        }
        if search.damagedRows > 0 {
            logger.error(
                "skipped damaged rows of the journal",
                metadata: ["rows": "\(search.damagedRows)"]
            )
        }
        return search.found.reversed()
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
}
