import HeraldCluster
import HeraldConsole
import HeraldMailbox
import HeraldModel
import HeraldStores
import HeraldTrust
import HeraldWeb

/// Searches a service's journal and reads the history of a notification; in a cluster, at all nodes.
package struct ServiceSearch: JournalSearching {
    /// Interval at which a wait asks the other nodes again.
    private static let clusterInterval = Duration.seconds(1)
    /// The most lines of one life.
    private static let lifeLimit = 1000
    /// The most devices whose names have the name that a search asks for.
    private static let namesakes = 1000

    let searcher: JournalSearcher
    let journal: ServiceJournal
    let clock: ServiceClock
    let turns = SearchTurns()

    init(_ assembly: ServiceAssembly) {
        journal = assembly.journal
        clock = assembly.clock
        let devices = assembly.trust.folder.devices
        searcher = JournalSearcher(
            store: assembly.storage.store,
            registry: assembly.delivery.registry,
            seal: assembly.trust.seal,
            devicesNamed: { name in
                try await devices.page(DeviceSelection(limit: ServiceSearch.namesakes, text: name)).items
                    .filter { $0.name?.lowercased() == name.lowercased() }.map(\.id)
            },
            node: assembly.storage.cluster?.name.text
        )
    }

    // MARK: - Searches

    func search(_ request: JournalSearchRequest) async throws -> JournalSearchAnswer {
        let begin = ContinuousClock.now
        let now = clock.now()
        let text = try JournalSearchText(request.text, now: now)
        let limit = request.limit ?? JournalSearchRequest.defaultLimit
        let own = journal.cluster?.name.text ?? ""
        let others = journal.cluster?.nodes.all.filter { $0.record.node != journal.cluster?.name } ?? []
        var asked = SearchCursor([own: ""])
        for other in others where other.state != .left { asked.places[other.record.node.text] = "" }
        if let cursor = request.cursor {
            guard let places = SearchCursor(cursor) else { throw JournalSearcher.wrongCursor }
            asked = places
        }
        let inquiry = SearchInquiry(q: request.text, now: now, limit: limit, places: asked.places)
        let names = Set(others.map(\.record.node).filter { asked.places[$0.text] != nil })
        let cluster = journal.cluster
        async let answers = cluster?.questions.search(inquiry, of: names) ?? [:]
        var pages: [String: NodeSearchPage] = [:]
        if let place = asked.places[own] {
            // Not while it waits for other nodes: their searches may be waiting for a turn here.
            pages[own] = try await turns.run { [searcher] in try await searcher.page(text, from: place, limit: limit) }
        }
        for (node, page) in await answers { pages[node.text] = page }
        let merged = MergedSearch(pages, asked: asked, limit: limit)
        let missing = others.map(\.record.node.text).filter { name in
            (asked.places[name] != nil || request.cursor == nil) && pages[name] == nil
        }
        return JournalSearchAnswer(
            items: merged.items,
            cursor: merged.cursor?.description,
            complete: merged.cursor == nil && missing.isEmpty,
            searchedBackTo: merged.searchedBackTo,
            tookMS: Int(clamping: (ContinuousClock.now - begin).wholeMilliseconds),
            missingNodes: missing.sorted()
        )
    }

    /// Answers another node.
    func page(_ inquiry: SearchInquiry) async throws -> NodeSearchPage {
        guard let place = inquiry.places[searcher.node ?? ""], JournalSearchRequest.limits.contains(inquiry.limit)
        else {
            throw JournalSearcher.wrongCursor
        }
        let text = try JournalSearchText(inquiry.q, now: WallTime(milliseconds: inquiry.now))
        return try await turns.run { [searcher] in
            try await searcher.page(text, from: place, limit: inquiry.limit)
        }
    }

    // MARK: - Lives

    func life(of id: NotificationID, until goal: JournalLife.Goal, wait: Duration) async throws -> JournalLife? {
        let deadline = ContinuousClock.now + wait
        var subscription: JournalSubscription?
        if wait > .zero {
            subscription = journal.store.feed.subscribe()
            guard subscription != nil else {
                let most = JournalFeed.subscriberLimit
                throw WebRefusal(503, "\(most) requests follow the journal already: try again later")
            }
        }
        while true {
            let answer = try await journal.answer(.notification(id), limit: ServiceSearch.lifeLimit)
            let life = answer.lines.isEmpty ? nil : JournalLife(id, answer)
            guard let subscription, life?.has(goal) != true, ContinuousClock.now < deadline else { return life }
            await next(line: id, subscription, before: deadline)
            try Task.checkCancellation()
        }
    }

    /// Waits for a new line of a notification, or until it is time to look anyway.
    private func next(
        line id: NotificationID,
        _ subscription: JournalSubscription,
        before deadline: ContinuousClock.Instant
    ) async {
        var end = deadline
        if journal.cluster != nil { end = min(end, ContinuousClock.now + ServiceSearch.clusterInterval) }
        let moment = end
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await Task.sleep(until: moment, clock: .continuous) }
            group.addTask {
                while let batch = await subscription.next() {
                    let isAbout = batch.events.contains { $0.id == id || $0.uniqueID == id }
                    if isAbout || batch.skipped > 0 { return }
                }
            }
            await group.next()
            group.cancelAll()
        }
    }
}

/// A search on its way to another node.
package struct SearchInquiry: Codable, Hashable, Sendable {
    let q: String
    /// The time for `after:-2h`, milliseconds since 1970.
    let now: Int64
    let limit: Int
    /// By node, as in ``SearchCursor``.
    let places: [String: String]

    init(q: String, now: WallTime, limit: Int, places: [String: String]) {
        self.q = q
        self.now = now.milliseconds
        self.limit = limit
        self.places = places
    }
}
