import CoreMetrics
package import HeraldModel
package import Logging
import Synchronization

/// Broadcast channels: providers create, list and delete them and send to them; devices subscribe.
///
/// 1. All channels are in memory, as the store reports them. Every change is durable before it is answered.
/// 2. The store numbers a broadcast and reports it, and it goes to the connected subscribers in the order of the reports: on
///    one machine at once, in a cluster when it comes from the log, at every node. The provider is answered when the message
///    for later subscribers is durable.
/// 3. No subscriber is missed: the newest message is set before the event loops are told, and a device is on its loop's
///    list before it asks for the newest. The loop recognizes a duplicate by its number.
package final class ChannelService: Sendable {
    package typealias Store = MailboxStore & JournalStore & ChannelStore

    private struct State {
        var directory: ChannelDirectory
        var queue: BroadcastQueue
        /// Channels of other nodes whose app this node does not know yet.
        var unnamed: [ChannelID: StoredChannel] = [:]
        weak var outlet: (any BroadcastOutlet)?
    }

    private let configuration: ChannelServiceConfiguration
    private let clock: any WallClock
    private let store: any Store
    private let apps: any AppNumbers
    private let memory: EnvelopeMemory
    private let logger: Logger
    private let tasks = TaskQueue()
    private let metrics = BroadcastMetrics()
    private let state: Mutex<State>

    package init(
        configuration: ChannelServiceConfiguration = ChannelServiceConfiguration(),
        clock: any WallClock,
        store: any Store,
        apps: any AppNumbers,
        memory: EnvelopeMemory,
        logger: Logger
    ) {
        self.memory = memory
        self.configuration = configuration
        self.clock = clock
        self.store = store
        self.apps = apps
        self.logger = logger
        state = Mutex(
            State(
                directory: ChannelDirectory(configuration),
                queue: BroadcastQueue(limit: configuration.broadcastsUnderWay)
            )
        )
    }

    /// Loads all channels from the store, and follows it; once, after the registry and before any listener opens.
    /// - Throws: If the store cannot be read.
    package func load() async throws {
        try await store.follow(self)
    }

    /// Sets the outlet of broadcasts; it is not retained.
    package func deliver(through outlet: any BroadcastOutlet) {
        state.withLock { $0.outlet = outlet }
    }

    /// Runs pending changes and expiry sweeps until the task is cancelled.
    package func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.tasks.run() }
            group.addTask { await self.runSweeps() }
        }
    }

    // MARK: - For providers

    /// The longest storage of a message; the listeners limit `apns-expiration` to it.
    package var longestStorage: Duration { configuration.longestStorage }

    /// A channel of an app; nil if the app has no such channel.
    package func channel(_ id: ChannelID, of app: App) -> BroadcastChannel? {
        look { $0.entry(id, of: app)?.channel }
    }

    /// The identifiers of an app's channels, oldest first, as JSON: `{"channels":["<base64>",…]}`.
    package func listing(of app: App) -> [UInt8] {
        look { $0.listing(of: app) }
    }

    /// Creates a channel; the completion is settled when it is durable.
    ///
    /// `team` is the team of the provider's token; nil for a provider whose certificate names the app.
    package func create(
        _ id: ChannelID,
        for app: App,
        storage: MessageStoragePolicy,
        team: String? = nil,
        completion: Completion
    ) -> PostDecision {
        guard store.isAccepting else { return .refused(.serviceUnavailable, since: nil) }
        guard state.withLock({ $0.directory.reserve(for: app) }) else {
            return .refused(.cannotCreateChannelConfig, since: nil)
        }
        let created = clock.now()
        tasks.add {
            await self.settle(completion, "could not create a channel") {
                try await self.apps.withNumber(of: app, for: team.map { .team($0) }) { number in
                    let channel = BroadcastChannel(id: id, app: number, storage: storage, created: created)
                    try await self.store.createChannel(channel)
                }
                self.look { $0.endReservation(for: app) }
            } onFailure: {
                self.look { $0.endReservation(for: app) }
            }
        }
        return .pending
    }

    /// Deletes a channel; the completion is settled when that is durable.
    ///
    /// Broadcasts in flight are still delivered.
    package func delete(_ id: ChannelID, of app: App, completion: Completion) -> PostDecision {
        guard store.isAccepting else { return .refused(.serviceUnavailable, since: nil) }
        let isThere = look { directory in
            guard directory.entry(id, of: app) != nil else { return false }
            directory.setBeingDeleted(true, id)
            return true
        }
        guard isThere else { return .refused(.channelNotRegistered, since: nil) }
        let moment = clock.now()
        tasks.add {
            await self.settle(completion, "could not delete a channel") {
                try await self.store.deleteChannel(id, at: moment)
            } onFailure: {
                self.look { $0.setBeingDeleted(false, id) }
            }
        }
        return .pending
    }

    /// Accepts a broadcast: the store numbers it, reports it, and keeps it where that is asked for.
    package func publish(_ post: BroadcastPost, completion: Completion) -> PostDecision {
        guard store.isAccepting, !memory.isFull else { return .refused(.serviceUnavailable, since: nil) }
        let (entry, hasRoom) = state.withLock { state in
            name(&state)
            return (state.directory.entry(post.channel, of: post.app), state.queue.hasRoom)
        }
        guard let entry else { return .refused(.channelNotRegistered, since: nil) }
        guard hasRoom else { return .refused(.tooManyRequests, since: nil) }
        entry.feed.countPublished()
        let broadcast = Broadcast(
            channel: post.channel,
            app: entry.channel.app,
            number: 0,
            id: post.id,
            uniqueID: post.uniqueID,
            received: post.received,
            storedUntil: entry.channel.storage == .newest ? post.storedUntil : nil,
            priority: post.priority,
            payload: post.payload
        )
        let bytes = broadcast.payload.count
        memory.add(payloadBytes: bytes)
        store.record(JournalEvent(.received, broadcast, at: broadcast.received, request: post.request), settling: nil)
        store.publish(broadcast, at: clock.now()) { [self] result in
            memory.remove(payloadBytes: bytes)
            switch result {
            case .success: completion.settle(.accepted)
            case .failure(let error): fail(completion, "could not store a broadcast", error)
            }
        }
        return .pending
    }

    /// Records a broadcast that no app could read, and nothing else; the completion is settled when that is durable.
    package func discard(_ post: BroadcastPost, as journalState: JournalState, completion: Completion) -> PostDecision {
        guard store.isAccepting else { return .refused(.serviceUnavailable, since: nil) }
        guard let channel = channel(post.channel, of: post.app) else {
            return .refused(.channelNotRegistered, since: nil)
        }
        let broadcast = Broadcast(
            channel: post.channel,
            app: channel.app,
            number: 0,
            id: post.id,
            uniqueID: post.uniqueID,
            received: post.received,
            storedUntil: nil,
            priority: post.priority,
            payload: []
        )
        store.record(JournalEvent(.received, broadcast, at: post.received, request: post.request), settling: nil)
        store.record(JournalEvent(journalState, broadcast, at: clock.now()), settling: completion)
        return .pending
    }

    // MARK: - For devices

    /// The feed of a channel; nil if the app has no such channel.
    package func feed(_ id: ChannelID, of app: App) -> ChannelFeed? {
        look { $0.entry(id, of: app)?.feed }
    }

    /// The message for a device that subscribes now; the courier withholds one whose expiry is not certain.
    package func newest(_ id: ChannelID, of app: App) -> Broadcast? {
        let newest = look { $0.entry(id, of: app)?.newest }
        guard let newest, !newest.isExpired(at: clock.certainTime()) else { return nil }
        return newest
    }

    // MARK: - For operators

    /// Channels of an app in both environments, or of all apps, after an identifier in base64, by that text.
    package func summaries(
        of bundle: Topic?,
        after id: String?,
        limit: Int
    ) -> (summaries: [Summary], isLast: Bool) {
        let entries = look { directory in
            guard let bundle else { return directory.all }
            return PushEnvironment.allCases.flatMap { directory.channels(of: App(topic: bundle, environment: $0)) }
        }
        let rest = entries.map { (id: $0.channel.id.base64, entry: $0) }.filter { $0.id > id ?? "" }
            .sorted { $0.id < $1.id }
        return (rest.prefix(limit).map { Summary($0.entry) }, rest.count <= limit)
    }

    /// A summary of a channel; nil if there is none, or its deletion is under way.
    package func summary(of id: ChannelID) -> Summary? {
        look { directory in
            directory.entry(id).flatMap { directory.entry(id, of: $0.app) }.map { Summary($0) }
        }
    }

    // MARK: - Parts

    /// Looks at the channels, or changes them.
    @discardableResult
    private func look<Result: Sendable>(_ body: (inout ChannelDirectory) -> Result) -> Result {
        state.withLock { state in
            name(&state)
            return body(&state.directory)
        }
    }

    /// Adds a channel as soon as the name of its app is known.
    private func add(_ stored: StoredChannel, _ state: inout State) {
        guard let app = apps.app(stored.channel.app) else {
            state.unnamed[stored.channel.id] = stored
            return
        }
        let feed = ChannelFeed(id: stored.channel.id, bundle: app.topic, metrics: metrics)
        var entry = ChannelDirectory.Entry(channel: stored.channel, app: app, feed: feed)
        entry.durable = stored.newest
        entry.newest = stored.newest.flatMap { $0.isExpired(at: clock.certainTime()) ? nil : $0 }
        state.directory.add(entry)
    }

    /// Adds the channels whose apps have become known.
    private func name(_ state: inout State) {
        guard !state.unnamed.isEmpty else { return }
        for (id, stored) in state.unnamed where apps.app(stored.channel.app) != nil {
            state.unnamed[id] = nil
            add(stored, &state)
        }
    }

    /// Sends a broadcast to the event loops.
    private func send(_ broadcast: Broadcast, _ feed: ChannelFeed, _ state: inout State) {
        let order = BroadcastSend(broadcast, feed) { self.finished(broadcast, handed: $0) }
        if let outlet = state.outlet { outlet.send(order) } else { tasks.add { order.finish(handed: 0) } }
    }

    /// Records the end of a broadcast on all event loops.
    private func finished(_ broadcast: Broadcast, handed: Int) {
        state.withLock { state in
            var next = state.queue.finished()
            while let waiting = next {
                if let feed = state.directory.entry(waiting.channel)?.feed { return send(waiting, feed, &state) }
                // Its channel was deleted.
                next = state.queue.finished()
            }
        }
        note(broadcast, handed: handed)
    }

    private func note(_ broadcast: Broadcast, handed: Int) {
        let detail = JournalEvent.Detail.subscriberCount(UInt64(clamping: handed))
        store.record(JournalEvent(.sentToSubscribers, broadcast, at: clock.now(), detail: detail), settling: nil)
    }

    private func settle(
        _ completion: Completion,
        _ failure: Logger.Message,
        _ work: () async throws -> Void,
        onFailure: () -> Void
    ) async {
        do {
            try await work()
            completion.settle(.accepted)
        } catch is RegistrationRefusal {
            onFailure()
            completion.settle(.refused(.cannotCreateChannelConfig))
        } catch {
            onFailure()
            fail(completion, failure, error)
        }
    }

    private func fail(_ completion: Completion, _ failure: Logger.Message, _ error: any Error) {
        logger.error(failure, metadata: ["error": "\(error)"])
        let isUnknown = (error as? any StoreOutcomeError)?.isUnknown ?? false
        completion.settle(isUnknown ? .unknown : .refused(.serviceUnavailable))
    }

    private func runSweeps() async {
        while !Task.isCancelled {
            do { try await Task.sleep(for: configuration.expirySweep) } catch { return }
            await sweep()
        }
    }

    /// Removes expired messages; they are never delivered, swept or not.
    package func sweep() async {
        let now = clock.certainTime()
        state.withLock { $0.directory.forgetExpired(at: now) }
        do {
            try await store.removeExpiredBroadcasts(at: now)
        } catch is CancellationError {
            // The service is stopping.
        } catch {
            logger.warning("could not remove expired broadcasts; trying again later", metadata: ["error": "\(error)"])
        }
    }
}

// MARK: - Reports of the store

extension ChannelService: ChannelSink {
    package func loaded(_ channels: [StoredChannel]) {
        change { state in for one in channels { add(one, &state) } }
    }

    package func created(_ channel: StoredChannel) {
        change { add(channel, &$0) }
    }

    package func deleted(_ id: ChannelID) {
        change { state in
            state.unnamed[id] = nil
            state.directory.remove(id)
        }
    }

    package func received(_ broadcast: Broadcast, isDurable: Bool) {
        let dropped: Broadcast? = state.withLock { state in
            name(&state)
            let isStored = broadcast.storedUntil != nil
            guard let entry = state.directory.entry(broadcast.channel) else {
                // Nobody has subscribed to the channel here.
                if isStored { state.unnamed[broadcast.channel]?.newest = broadcast }
                return nil
            }
            if isStored { state.directory.setNewest(broadcast, isDurable: isDurable) }
            switch state.queue.add(broadcast) {
            case .send:
                send(broadcast, entry.feed, &state)
                return nil
            case .wait(let dropped): return dropped
            }
        }
        if let dropped { note(dropped, handed: 0) }
    }

    package func settled(_ broadcast: Broadcast, isStored: Bool) {
        state.withLock { state in
            if isStored {
                state.directory.stored(broadcast)
            } else {
                state.directory.couldNotStore(broadcast)
            }
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let count = state.withLock { state in
            body(&state)
            return state.directory.count
        }
        metrics.channels.record(count)
    }
}
