import HeraldConsole
import HeraldMailbox
import HeraldModel
import HeraldStores
import HeraldTrust

/// Searches the journal of this node.
struct JournalSearcher: Sendable {
    /// Time after which a page ends, so that an answer comes within 200 ms.
    static let budget = Duration.milliseconds(150)

    let store: SQLiteStore
    let registry: Registry
    /// Decrypts device tokens; nil without a running service.
    let seal: TokenSeal?
    /// The devices of a name.
    let devicesNamed: @Sendable (String) async throws -> [DeviceID]
    /// The name of this node in its cluster, for its lines.
    var node: String?

    /// A page of lines, from the place where an earlier page ended; empty for the newest lines.
    /// - Throws: ``AdminError`` for an unknown device, token or place; if the journal cannot be read.
    func page(_ text: JournalSearchText, from place: String, limit: Int) async throws -> NodeSearchPage {
        var cursor: JournalCursor?
        if !place.isEmpty {
            cursor = JournalCursor(place)
            guard cursor != nil else { throw Self.wrongCursor }
        }
        let filter = try await filter(text)
        let page = try await store.search(filter, from: cursor, limit: limit, within: JournalSearcher.budget)
        return NodeSearchPage(
            items: page.lines.map { NodeSearchPage.Item(entry: reader.entry($0.event), next: $0.next.description) },
            next: page.next?.description,
            searchedBackTo: page.searchedBackTo?.rfc3339
        )
    }

    /// Reads the lines that were found.
    var reader: JournalReader { JournalReader(store: store, registry: registry, senders: store.senders, node: node) }

    static let wrongCursor = AdminError(.badRequest, "cursor must be that of an earlier answer to the same search")

    // MARK: - Names

    /// The filter of a search: the numbers of its names.
    /// - Throws: ``AdminError`` for an unknown device, and for a token that does not open.
    func filter(_ text: JournalSearchText) async throws -> JournalFilter {
        var filter = JournalFilter()
        filter.ids = text.ids
        filter.states = text.states
        filter.reasons = text.reasons
        filter.types = text.types
        filter.priorities = text.priorities
        filter.after = text.after
        filter.before = text.before
        filter.environment = text.environment.map { environment in
            JournalFilter.Environment(environment) { [registry] in registry.app($0)?.environment == environment }
        }
        filter.topics = try await text.topics.resolved { topic in
            [.name(topic.name)] + registry.apps(of: topic).map { .app($0) }
        }
        filter.devices = try await text.devices.resolved { try await numbers(ofDevice: $0) }
        filter.slots = try await text.tokens.resolved { try slot(of: $0) }
        if text.providers != .init() {
            let names = store.senders.names(after: 0, upTo: SenderNumber(.max)).map { $0.lowercased() }
            filter.senders = try await text.providers.resolved { wanted in
                let wanted = wanted.lowercased()
                return names.indices.filter { names[$0] == wanted }.map { SenderNumber(UInt16(clamping: $0 + 1)) }
            }
        }
        return filter
    }

    private func numbers(ofDevice text: String) async throws -> [DeviceNumber] {
        if let number = DeviceID(text).flatMap({ registry.number(of: $0) }) { return [number] }
        let named = try await devicesNamed(text)
        guard !named.isEmpty else {
            throw AdminError(
                .badRequest,
                "'\(text)' is not an apns-id (a UUID), a device token or a topic, and no device has it as its identifier or name"
            )
        }
        // A device that never connected has no number, and no lines.
        return named.compactMap { registry.number(of: $0) }
    }

    private func slot(of token: DeviceToken) throws -> [Slot] {
        guard let seal else { throw AdminError(.conflict, "a running service is needed to search for a device token") }
        guard let contents = seal.open(token) else {
            throw AdminError(
                .badRequest,
                "no token key of this service opens the device token: it is of another service, of a retired key, or not "
                    + "whole (`herald token inspect` tells more)"
            )
        }
        return [contents.slot]
    }
}
