import Foundation
package import HeraldConsole
import HeraldMailbox
import HeraldModel
import HeraldStores
import Logging

extension JournalReader {
    /// The journal of a folder on which no service runs.
    package static func entries(
        _ question: JournalQuestion,
        limit: Int,
        in folder: DataFolder,
        under lock: FolderLock
    ) async throws -> [JournalEntry] {
        try await read(folder, under: lock) { store, registry in
            try await JournalReader(store: store, registry: registry, senders: store.senders)
                .entries(question, limit: limit)
        }
    }

    /// The newest lines that a search finds in such a folder, oldest first.
    package static func entries(
        _ search: JournalSearchText,
        limit: Int,
        in folder: DataFolder,
        under lock: FolderLock
    ) async throws -> [JournalEntry] {
        try await read(folder, under: lock) { store, registry in
            // The names of devices are in the trust folder, which this reader leaves alone.
            let searcher = JournalSearcher(store: store, registry: registry, seal: nil) { _ in [] }
            var found: [JournalEntry] = []
            var place = ""
            repeat {
                let page = try await searcher.page(search, from: place, limit: limit - found.count)
                found += page.items.map(\.entry)
                guard let next = page.next else { break }
                place = next
            } while found.count < limit
            return found.reversed()
        }
    }

    private static func read(
        _ folder: DataFolder,
        under lock: FolderLock,
        _ body: (SQLiteStore, Registry) async throws -> [JournalEntry]
    ) async throws -> [JournalEntry] {
        defer { withExtendedLifetime(lock) {} }
        // A service that never ran has no store, and a search does not make one.
        guard FileManager.default.fileExists(atPath: folder.databasePath) else { return [] }
        let silent = Logger(label: "herald.journal") { _ in SwiftLogNoOpLogHandler() }
        let clock = ServiceClock()
        let store = try SQLiteStore(path: folder.databasePath, clock: clock, logger: silent) { _ in
            // A command that only reads has nothing that could be lost.
        }
        let directory = SingleNodeDirectory()
        let postOffice = PostOffice(clock: clock, store: store, directory: directory, logger: silent)
        let registry = Registry(
            store: store,
            postOffice: postOffice,
            directory: directory,
            clock: clock,
            logger: silent
        )
        do {
            try await registry.load()
            let entries = try await body(store, registry)
            await store.close()
            return entries
        } catch {
            await store.close()
            throw error
        }
    }
}
