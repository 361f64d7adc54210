package import HeraldConsole
package import HeraldMailbox
import HeraldModel

/// Reads the journal, with the names of devices and apps.
package struct JournalReader {
    package let store: any JournalStore
    let registry: Registry
    package let senders: SenderNames
    /// The name of this node in its cluster, for its lines; nil for a service that stands alone.
    package var node: String?

    /// The newest lines that match, oldest first.
    /// - Throws: If the journal cannot be read.
    package func entries(_ question: JournalQuestion, limit: Int) async throws -> [JournalEntry] {
        var events: [JournalEvent] = []
        for query in queries(question) { events += try await store.lines(matching: query, limit: limit) }
        return events.sorted { $0.time < $1.time }.suffix(limit).map(entry)
    }

    /// The JSON of a line.
    func entry(_ event: JournalEvent) -> JournalEntry {
        JournalEntry(
            event,
            device: event.device.flatMap(registry.device),
            app: registry.app(event.app),
            provider: event.request.flatMap { senders.name(of: $0.sender) },
            node: node
        )
    }

    /// No query for a device that the service has never seen.
    private func queries(_ question: JournalQuestion) -> [JournalQuery] {
        switch question {
        case .notification(let id): [.notification(id)]
        case .device(let id): registry.number(of: id).map { [.device($0)] } ?? []
        case .topic(let topic): registry.apps(of: topic).map { .app($0) } + [.topicWithoutApp(topic)]
        }
    }
}

extension Registry {
    /// The numbers of a topic, by environment.
    func apps(of topic: Topic) -> [AppNumber] {
        PushEnvironment.allCases.compactMap { number(of: App(topic: topic, environment: $0)) }
    }
}
