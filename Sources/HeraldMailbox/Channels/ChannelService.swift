import CoreMetrics
package import HeraldModel
package import Logging
import Synchronization

/// Broadcast channels: providers create, list and delete them and send to them; devices subscribe.
///
/// 1. All channels are in memory. Every change is durable before it is answered.
/// 2. A broadcast goes to the connected subscribers at once, in the order in which broadcasts were accepted. The message for
///    later subscribers is stored meanwhile, and the provider is answered when it is durable.
/// 3. No subscriber is missed: the newest message is set before the event loops are told, and a device is on its loop's
///    list before it asks for the newest. The loop recognizes a duplicate by its number.
package final class ChannelService: Sendable {
    package typealias Store = MailboxStore & JournalStore & ChannelStore

    private struct State {
        var directory: ChannelDirectory
        var underWay = 0
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
        state = Mutex(State(directory: ChannelDirectory(configuration)))
    }

    /// Loads all channels from the store; once, after the registry and before any listener opens.
    /// - Throws: If the store cannot be read.
    package func load() async throws {
        let stored = try await store.loadChannels()
        let now = clock.certainTime()
        state.withLock { state in
            for one in stored {
                guard let app = apps.app(one.channel.app) else { continue }
                var entry = entry(one.channel, app)
                if let newest = one.newest {
                    entry.durable = newest
                    entry.newest = newest.isExpired(at: now) ? nil : newest
                }
                state.directory.add(entry)
            }
            metrics.channels.record(state.directory.count)
        }
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
        state.withLock { $0.directory.entry(id, of: app)?.channel }
    }

    /// The identifiers of an app's channels, oldest first, as JSON: `{"channels":["<base64>",…]}`.
    package func listing(of app: App) -> [UInt8] {
        state.withLock { $0.directory.listing(of: app) }
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
                    self.update { $0.fulfil(self.entry(channel, app)) }
                }
            } onFailure: {
                self.update { $0.cancelReservation(for: app) }
            }
        }
        return .pending
    }

    /// Deletes a channel; the completion is settled when that is durable.
    ///
    /// Broadcasts in flight are still delivered.
    package func delete(_ id: ChannelID, of app: App, completion: Completion) -> PostDecision {
        guard store.isAccepting else { return .refused(.serviceUnavailable, since: nil) }
        // Removed from the directory first: nothing new is accepted for it.
        guard let entry = update({ $0.remove(id, of: app) }) else {
            return .refused(.channelNotRegistered, since: nil)
        }
        let moment = clock.now()
        tasks.add {
            await self.settle(completion, "could not delete a channel") {
                try await self.store.deleteChannel(id, at: moment)
            } onFailure: {
                self.update { $0.add(entry) }
            }
        }
        return .pending
    }

    /// Accepts a broadcast: sends it to the subscribers, and stores it where that is asked for.
    package func publish(_ post: BroadcastPost, completion: Completion) -> PostDecision {
        guard store.isAccepting, !memory.isFull else { return .refused(.serviceUnavailable, since: nil) }
        let (broadcast, decision) = state.withLock { state -> (Broadcast?, PostDecision) in
            guard let entry = state.directory.entry(post.channel, of: post.app) else {
                return (nil, .refused(.channelNotRegistered, since: nil))
            }
            guard state.underWay < configuration.broadcastsUnderWay else {
                return (nil, .refused(.tooManyRequests, since: nil))
            }
            let isStored = entry.channel.storage == .newest && post.storedUntil != nil
            let broadcast = Broadcast(
                channel: post.channel,
                app: entry.channel.app,
                number: state.directory.nextNumber(now: clock.now()),
                id: post.id,
                uniqueID: post.uniqueID,
                received: post.received,
                storedUntil: isStored ? post.storedUntil : nil,
                priority: post.priority,
                payload: post.payload
            )
            if isStored { state.directory.setNewest(broadcast) }
            entry.feed.countPublished()
            state.underWay += 1
            let order = BroadcastOrder(broadcast, entry.feed) { self.finished(broadcast, handed: $0) }
            store.record(JournalEvent(.received, broadcast, at: broadcast.received), settling: nil)
            if let outlet = state.outlet { outlet.send(order) } else { tasks.add { order.finish(handed: 0) } }
            return (broadcast, isStored ? .pending : .accepted)
        }
        if decision == .pending, let broadcast { keep(broadcast, completion) }
        return decision
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
        store.record(JournalEvent(.received, broadcast, at: post.received), settling: nil)
        store.record(JournalEvent(journalState, broadcast, at: clock.now()), settling: completion)
        return .pending
    }

    // MARK: - For devices

    /// The feed of a channel; nil if the app has no such channel.
    package func feed(_ id: ChannelID, of app: App) -> ChannelFeed? {
        state.withLock { $0.directory.entry(id, of: app)?.feed }
    }

    /// The message for a device that subscribes now; the courier withholds one whose expiry is not certain.
    package func newest(_ id: ChannelID, of app: App) -> Broadcast? {
        let newest = state.withLock { $0.directory.entry(id, of: app)?.newest }
        guard let newest, !newest.isExpired(at: clock.certainTime()) else { return nil }
        return newest
    }

    // MARK: - For operators

    /// A summary of one channel.
    package struct Summary: Sendable {
        package let channel: BroadcastChannel
        package let app: App
        package let feed: ChannelFeed
        package let hasStoredMessage: Bool
    }

    /// The channels of an app, or of all, in no order; at most `limit`.
    package func summaries(of app: App?, limit: Int) -> [Summary] {
        let entries = state.withLock { state in app.map { state.directory.channels(of: $0) } ?? state.directory.all }
        return entries.prefix(limit).map { entry in
            Summary(
                channel: entry.channel,
                app: entry.app,
                feed: entry.feed,
                hasStoredMessage: entry.newest != nil
            )
        }
    }

    private func entry(_ channel: BroadcastChannel, _ app: App) -> ChannelDirectory.Entry {
        let feed = ChannelFeed(id: channel.id, bundle: app.topic, metrics: metrics)
        return ChannelDirectory.Entry(channel: channel, app: app, feed: feed)
    }

    @discardableResult
    private func update<Result: Sendable>(_ change: (inout ChannelDirectory) -> Result) -> Result {
        let (result, count) = state.withLock { state in
            let result = change(&state.directory)
            return (result, state.directory.count)
        }
        metrics.channels.record(count)
        return result
    }

    private func keep(_ broadcast: Broadcast, _ completion: Completion) {
        let bytes = broadcast.payload.count
        memory.add(payloadBytes: bytes)
        tasks.add {
            defer { self.memory.remove(payloadBytes: bytes) }
            await self.settle(completion, "could not store a broadcast") {
                try await self.store.keepBroadcast(broadcast, at: self.clock.now())
                self.state.withLock { $0.directory.stored(broadcast) }
            } onFailure: {
                self.state.withLock { $0.directory.couldNotStore(broadcast) }
            }
        }
    }

    /// Records the end of a broadcast on all event loops.
    private func finished(_ broadcast: Broadcast, handed: Int) {
        state.withLock { $0.underWay -= 1 }
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
            logger.error(failure, metadata: ["error": "\(error)"])
            onFailure()
            let isUnknown = (error as? any StoreOutcomeError)?.isUnknown ?? false
            completion.settle(isUnknown ? .unknown : .refused(.serviceUnavailable))
        }
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
