package import HeraldModel

/// Stores broadcast channels, each with its newest message.
///
/// Every change is durable when the call returns. ``ChannelService`` has all of it in memory too.
package protocol ChannelStore: Sendable {
    /// Loads all channels in order of creation, with their messages, expired or not.
    /// - Throws: If the store cannot be read.
    func loadChannels() async throws -> [StoredChannel]

    /// Stores a new channel.
    func createChannel(_ channel: BroadcastChannel) async throws

    /// Deletes a channel, and its message with a line in the journal. Nothing happens if there is none.
    func deleteChannel(_ id: ChannelID, at moment: WallTime) async throws

    /// Stores a message as its channel's newest, unless the channel has a newer one already, or is gone.
    ///
    /// The journal lines `stored` and, for the message before, `replaced` become durable with it.
    func keepBroadcast(_ broadcast: Broadcast, at moment: WallTime) async throws

    /// Deletes messages that have expired, each with a line in the journal.
    func removeExpiredBroadcasts(at moment: WallTime) async throws
}

/// A channel with its stored message.
package struct StoredChannel: Hashable, Sendable {
    package let channel: BroadcastChannel
    package let newest: Broadcast?

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
