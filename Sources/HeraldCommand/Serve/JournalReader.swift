import HeraldConsole
import HeraldMailbox
import HeraldModel

/// Looks lines of the journal up, and gives devices and apps their names back.
struct JournalReader {
    let store: any JournalStore
    let registry: Registry

    /// The lines that match, oldest first; the newest are kept.
    /// - Throws: If the journal cannot be read.
    func entries(_ question: JournalQuestion, limit: Int) async throws -> [JournalEntry] {
        var events: [JournalEvent] = []
        for query in queries(question) { events += try await store.lines(matching: query, limit: limit) }
        return events.sorted { $0.time < $1.time }.suffix(limit).map { event in
            JournalEntry(event, device: registry.device(event.slot.device), app: registry.app(event.slot.app))
        }
    }

    /// None for a device or a topic that the service has never seen.
    private func queries(_ question: JournalQuestion) -> [JournalQuery] {
        switch question {
        case .notification(let id): [.notification(id)]
        case .device(let id): registry.number(of: id).map { [.device($0)] } ?? []
        case .topic(let topic):
            PushEnvironment.allCases.compactMap { environment in
                registry.number(of: App(topic: topic, environment: environment)).map { .app($0) }
            }
        }
    }
}
