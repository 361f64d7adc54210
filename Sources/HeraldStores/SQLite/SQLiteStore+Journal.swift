import GRDB
package import HeraldMailbox
package import HeraldModel
import Logging

extension SQLiteStore: JournalStore {
    package func record(_ events: [JournalEvent]) {
        for event in events { record(event, settling: nil) }
    }

    package func record(_ event: JournalEvent, settling receipt: Receipt?) {
        guard !queue.append(.record(event, receipt)) else { return }
        receipt?.settle(.refused(.serviceUnavailable))
    }

    package func lines(matching query: JournalQuery, limit: Int) async throws -> [JournalEvent] {
        // What was recorded before the call is committed first. If it cannot be, what is on disk is still worth reading.
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
                "parts of the journal are damaged and were left out",
                metadata: ["rows": "\(search.damagedRows)"]
            )
        }
        return search.found.reversed()
    }

    package func trim(before moment: WallTime, maximumBytes: Int) async throws {
        let slice = configuration.upkeepSlice
        repeat {
            try Task.checkCancellation()
        } while try await change { database, _ in
            try JournalTable.trim(database, before: moment, maximumBytes: maximumBytes, limit: slice)
        } == slice
    }
}
