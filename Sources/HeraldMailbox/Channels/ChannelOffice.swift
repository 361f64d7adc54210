import CoreMetrics
package import HeraldModel
package import Logging
import Synchronization

/// Broadcast channels: made, listed and deleted by providers, subscribed to by devices, and what is sent to them.
///
/// 1. All channels are in memory, and everything that is answered is durable first.
/// 2. A broadcast goes to the connected subscribers at once, in the order in which broadcasts were taken; what is to be
///    stored for later subscribers is stored meanwhile, and the provider is answered when that is durable.
/// 3. No subscriber is missed: the newest message is set before the event loops are told, and a device is on its loop's
///    list before it asks for the newest. That it may be told twice is for the loop to see, by the number.
package final class ChannelOffice: Sendable {
    package typealias Store = MailboxStore & JournalStore & ChannelStore

    private struct State {
        var book: ChannelBook
        var underWay = 0
        weak var outlet: (any BroadcastOutlet)?
    }

    private let configuration: ChannelOfficeConfiguration
    private let clock: any WallClock
    private let store: any Store
    private let apps: any AppNumbers
    private let load: LetterLoad
    private let logger: Logger
    private let errands = Errands()
    private let metrics = BroadcastMetrics()
    private let state: Mutex<State>

    package init(
        configuration: ChannelOfficeConfiguration = ChannelOfficeConfiguration(),
        clock: any WallClock,
        store: any Store,
        apps: any AppNumbers,
        load: LetterLoad,
        logger: Logger
    ) {
        self.load = load
        self.configuration = configuration
        self.clock = clock
        self.store = store
        self.apps = apps
        self.logger = logger
        state = Mutex(State(book: ChannelBook(configuration)))
    }

    /// Takes over all that the store knows; once, after the registry and before any door opens.
    /// - Throws: If the store cannot be read.
    package func load() async throws {
        let stored = try await store.loadChannels()
        let now = clock.now()
        state.withLock { state in
            for one in stored {
                guard let app = apps.app(one.channel.app) else { continue }
                var entry = entry(one.channel, app)
                if let newest = one.newest {
                    entry.durable = newest
                    entry.newest = newest.isExpired(at: now) ? nil : newest
                }
                state.book.add(entry)
            }
            metrics.channels.record(state.book.count)
        }
    }

    /// Says who brings broadcasts to devices; it is not kept alive.
    package func deliver(through outlet: any BroadcastOutlet) {
        state.withLock { $0.outlet = outlet }
    }

    /// Does what has to wait, and sweeps what expired, until the task is cancelled; what was begun is ended.
    package func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.errands.run() }
            group.addTask { await self.runSweeps() }
        }
    }

    // For providers.

    /// How long a message may be stored at the longest; the doors cut `apns-expiration` to it.
    package var longestStorage: Duration { configuration.longestStorage }

    /// A channel of an app; nil if the app has no such channel.
    package func channel(_ id: ChannelID, of app: App) -> BroadcastChannel? {
        state.withLock { $0.book.entry(id, of: app)?.channel }
    }

    /// The identifiers of an app's channels, oldest first, as JSON: `{"channels":["<base64>",…]}`.
    package func listing(of app: App) -> [UInt8] {
        state.withLock { $0.book.listing(of: app) }
    }

    /// Makes a channel under a new identifier; the receipt is settled once it is durable.
    package func create(
        _ id: ChannelID,
        for app: App,
        storage: MessageStoragePolicy,
        receipt: Receipt
    ) -> PostDecision {
        guard store.isAccepting else { return .refused(.serviceUnavailable, since: nil) }
        guard state.withLock({ $0.book.reserve(for: app) }) else {
            return .refused(.cannotCreateChannelConfig, since: nil)
        }
        let created = clock.now()
        errands.add {
            await self.settle(receipt, "could not make a channel") {
                let number = try await self.apps.makeNumber(of: app)
                let channel = BroadcastChannel(id: id, app: number, storage: storage, created: created)
                try await self.store.createChannel(channel)
                self.update { $0.fulfil(self.entry(channel, app)) }
            } onFailure: {
                self.update { $0.giveUp(for: app) }
            }
        }
        return .pending
    }

    /// Deletes a channel; the receipt is settled once that is durable.
    ///
    /// What is on its way to devices stays on its way.
    package func delete(_ id: ChannelID, of app: App, receipt: Receipt) -> PostDecision {
        guard store.isAccepting else { return .refused(.serviceUnavailable, since: nil) }
        // Out of the book first: what is accepted from now on would not outlive the channel.
        guard let entry = update({ $0.remove(id, of: app) }) else {
            return .refused(.channelNotRegistered, since: nil)
        }
        let moment = clock.now()
        errands.add {
            await self.settle(receipt, "could not delete a channel") {
                try await self.store.deleteChannel(id, at: moment)
            } onFailure: {
                self.update { $0.add(entry) }
            }
        }
        return .pending
    }

    /// Takes a broadcast: sends it to those who are subscribed, and stores it where it is to be stored.
    package func publish(_ post: BroadcastPost, receipt: Receipt) -> PostDecision {
        guard store.isAccepting, !load.isFull else { return .refused(.serviceUnavailable, since: nil) }
        let (broadcast, decision) = state.withLock { state -> (Broadcast?, PostDecision) in
            guard let entry = state.book.entry(post.channel, of: post.app) else {
                return (nil, .refused(.channelNotRegistered, since: nil))
            }
            guard state.underWay < configuration.broadcastsUnderWay else {
                return (nil, .refused(.tooManyRequests, since: nil))
            }
            let isStored = entry.channel.storage == .newest && post.storedUntil != nil
            let broadcast = Broadcast(
                channel: post.channel,
                app: entry.channel.app,
                number: state.book.nextNumber(now: clock.now()),
                id: post.id,
                uniqueID: post.uniqueID,
                received: post.received,
                storedUntil: isStored ? post.storedUntil : nil,
                priority: post.priority,
                payload: post.payload
            )
            if isStored { state.book.setNewest(broadcast) }
            entry.feed.countPublished()
            state.underWay += 1
            let order = BroadcastOrder(broadcast, entry.feed) { self.finished(broadcast, handed: $0) }
            store.record(JournalEvent(.received, broadcast, at: broadcast.received), settling: nil)
            if let outlet = state.outlet { outlet.send(order) } else { errands.add { order.finish(handed: 0) } }
            return (broadcast, isStored ? .pending : .accepted)
        }
        if decision == .pending, let broadcast { keep(broadcast, receipt) }
        return decision
    }

    /// Takes a broadcast that no app could read: it goes on record, and nowhere else; the receipt is settled once it is.
    package func discard(_ post: BroadcastPost, as journalState: JournalState, receipt: Receipt) -> PostDecision {
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
        store.record(JournalEvent(journalState, broadcast, at: clock.now()), settling: receipt)
        return .pending
    }

    // For devices.

    /// What a device subscribes to; nil if the app has no such channel.
    package func feed(_ id: ChannelID, of app: App) -> ChannelFeed? {
        state.withLock { $0.book.entry(id, of: app)?.feed }
    }

    /// The message that a device gets which subscribes now.
    package func newest(_ id: ChannelID, of app: App) -> Broadcast? {
        let newest = state.withLock { $0.book.entry(id, of: app)?.newest }
        guard let newest, !newest.isExpired(at: clock.now()) else { return nil }
        return newest
    }

    // For operators.

    /// What is known of one channel.
    package struct Summary: Sendable {
        package let channel: BroadcastChannel
        package let app: App
        package let feed: ChannelFeed
        package let hasStoredMessage: Bool
    }

    /// The channels of an app, or of all, in no order; at most `limit`.
    package func summaries(of app: App?, limit: Int) -> [Summary] {
        let entries = state.withLock { state in app.map { state.book.channels(of: $0) } ?? state.book.all }
        return entries.prefix(limit).map { entry in
            Summary(
                channel: entry.channel,
                app: entry.app,
                feed: entry.feed,
                hasStoredMessage: entry.newest != nil
            )
        }
    }

    // How it is done.

    private func entry(_ channel: BroadcastChannel, _ app: App) -> ChannelBook.Entry {
        let feed = ChannelFeed(id: channel.id, bundle: app.topic, metrics: metrics)
        return ChannelBook.Entry(channel: channel, app: app, feed: feed)
    }

    @discardableResult
    private func update<Result: Sendable>(_ change: (inout ChannelBook) -> Result) -> Result {
        let (result, count) = state.withLock { state in
            let result = change(&state.book)
            return (result, state.book.count)
        }
        metrics.channels.record(count)
        return result
    }

    private func keep(_ broadcast: Broadcast, _ receipt: Receipt) {
        let bytes = broadcast.payload.count
        load.add(payloadBytes: bytes)
        errands.add {
            defer { self.load.remove(payloadBytes: bytes) }
            await self.settle(receipt, "could not store a broadcast") {
                try await self.store.keepBroadcast(broadcast, at: self.clock.now())
                self.state.withLock { $0.book.haveKept(broadcast) }
            } onFailure: {
                self.state.withLock { $0.book.couldNotKeep(broadcast) }
            }
        }
    }

    /// All event loops have been through their subscribers.
    private func finished(_ broadcast: Broadcast, handed: Int) {
        state.withLock { $0.underWay -= 1 }
        store.record(JournalEvent(broadcast, subscribers: handed, at: clock.now()), settling: nil)
    }

    private func settle(
        _ receipt: Receipt,
        _ failure: Logger.Message,
        _ work: () async throws -> Void,
        onFailure: () -> Void
    ) async {
        do {
            try await work()
            receipt.settle(.accepted)
        } catch {
            logger.error(failure, metadata: ["error": "\(error)"])
            onFailure()
            receipt.settle(.refused(.serviceUnavailable))
        }
    }

    private func runSweeps() async {
        while !Task.isCancelled {
            do { try await Task.sleep(for: configuration.expirySweep) } catch { return }
            await sweep()
        }
    }

    /// Forgets what expired; what is expired is never delivered, swept or not.
    package func sweep() async {
        let now = clock.now()
        state.withLock { $0.book.forgetExpired(at: now) }
        do {
            try await store.removeExpiredBroadcasts(at: now)
        } catch is CancellationError {
            // The service stops.
        } catch {
            logger.warning("could not remove broadcasts that expired", metadata: ["error": "\(error)"])
        }
    }
}
