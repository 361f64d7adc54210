package import HeraldModel

/// Stores broadcast channels, each with its newest message, and numbers broadcasts.
///
/// Every change is durable when the call returns. ``ChannelService`` has all of it in memory too.
package protocol ChannelStore: Sendable {
    /// Reports all channels to a sink, and from then on every change of any node, in order.
    ///
    /// An engine has one sink, which it does not retain.
    /// - Throws: If the store cannot be read.
    func follow(_ sink: any ChannelSink) async throws

    /// Loads all channels in order of creation, with their messages, expired or not.
    /// - Throws: If the store cannot be read.
    func loadChannels() async throws -> [StoredChannel]

    /// Stores a new channel; the sink hears of it before the call returns.
    func createChannel(_ channel: BroadcastChannel) async throws

    /// Deletes a channel, and its message with a line in the journal. Nothing happens if there is none.
    ///
    /// The sink hears of it before the call returns.
    func deleteChannel(_ id: ChannelID, at moment: WallTime) async throws

    /// Numbers a broadcast and hands it to the sink; stores it as its channel's newest if it has an end of storage.
    ///
    /// Returns at once. `done` is called once, from any thread, possibly before this returns: when the broadcast is durable,
    /// or at once in one process if it is not to be stored; with an error otherwise. The journal gets the lines `stored` and,
    /// for the message before, `replaced`.
    func publish(
        _ broadcast: Broadcast,
        at moment: WallTime,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    )

    /// Deletes messages that have expired, each with a line in the journal.
    func removeExpiredBroadcasts(at moment: WallTime) async throws
}

/// Hears what a store's channels do: all nodes hear it in the same order.
///
/// Called by one thread at a time, under a lock of the store. Each call returns at once.
package protocol ChannelSink: AnyObject, Sendable {
    /// All channels, with their messages; once, before everything else.
    func loaded(_ channels: [StoredChannel])
    /// A channel was made; it has a message already where the reports of a cluster cross.
    func created(_ channel: StoredChannel)
    func deleted(_ id: ChannelID)
    /// The next broadcast, with its number. A stored one may not be durable yet.
    func received(_ broadcast: Broadcast, isDurable: Bool)
    /// A broadcast is durable now, or could not be stored.
    func settled(_ broadcast: Broadcast, isStored: Bool)
}

/// A channel with its stored message.
package struct StoredChannel: Hashable, Sendable {
    package let channel: BroadcastChannel
    package var newest: Broadcast?

    package init(channel: BroadcastChannel, newest: Broadcast?) {
        self.channel = channel
        self.newest = newest
    }
}

/// Numbers apps: the registry.
package protocol AppNumbers: Sendable {
    func app(_ number: AppNumber) -> App?
    /// Calls `body` with the number of an app, a new one for a new app; the app is not forgotten meanwhile.
    /// - Throws: ``RegistrationRefusal`` of a new app, or if the store or `body` fails.
    func withNumber<Value: Sendable>(
        of app: App,
        for origin: AppOrigin?,
        _ body: (AppNumber) async throws -> Value
    ) async throws -> Value
}

extension Registry: AppNumbers {}
