package import HeraldModel

/// Where broadcast channels are kept, each with the newest message that it stores.
///
/// Every change is durable when the call returns. The channels of a service are few beside its devices: all of them, and
/// what they store, are in memory too (``ChannelOffice``).
package protocol ChannelStore: Sendable {
    /// All channels in the order in which they were made, and what they store, expired or not.
    /// - Throws: If the store cannot be read.
    func loadChannels() async throws -> [StoredChannel]

    /// Keeps a new channel.
    func createChannel(_ channel: BroadcastChannel) async throws

    /// Forgets a channel and what it stores, which gets a line in the journal. Nothing happens if there is none.
    func deleteChannel(_ id: ChannelID, at moment: WallTime) async throws

    /// Keeps a message as its channel's newest, unless the channel has one with a greater number already, or is gone.
    ///
    /// The journal's lines `stored` and, for what it replaced, `replaced`, become durable with it.
    func keepBroadcast(_ broadcast: Broadcast, at moment: WallTime) async throws

    /// Forgets stored messages whose time was over at `moment`, each with a line in the journal.
    func removeExpiredBroadcasts(at moment: WallTime) async throws
}

/// A channel as the store keeps it.
package struct StoredChannel: Hashable, Sendable {
    package let channel: BroadcastChannel
    package let newest: Broadcast?

    package init(channel: BroadcastChannel, newest: Broadcast?) {
        self.channel = channel
        self.newest = newest
    }
}

/// Who gives apps their numbers: the registry.
package protocol AppNumbers: Sendable {
    func app(_ number: AppNumber) -> App?
    /// The number of an app; makes one for an app never seen before.
    /// - Throws: If the store fails.
    func makeNumber(of app: App) async throws -> AppNumber
}

extension Registry: AppNumbers {}
