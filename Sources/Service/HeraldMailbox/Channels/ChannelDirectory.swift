import HeraldModel

/// All channels of a service, by identifier and by app; without clock, store or lock.
struct ChannelDirectory {
    struct Entry {
        let channel: BroadcastChannel
        let app: App
        let feed: ChannelFeed
        /// The newest message, durable or not, for devices that subscribe now.
        var newest: Broadcast?
        /// The newest durable message.
        var durable: Broadcast?
        /// Whether its deletion is under way: nothing new is accepted for it.
        var isBeingDeleted = false
    }

    private struct AppChannels {
        var ids: Set<ChannelID> = []
        /// The number of channels that are being made.
        var reserved = 0
        /// The listing, cached until a channel is added or removed.
        var listing: [UInt8]?
    }

    private let configuration: ChannelServiceConfiguration
    private var entries: [ChannelID: Entry] = [:]
    private var byApp: [App: AppChannels] = [:]
    private var reserved = 0

    init(_ configuration: ChannelServiceConfiguration) {
        self.configuration = configuration
    }

    var count: Int { entries.count }

    var all: [Entry] { entries.values.filter { !$0.isBeingDeleted } }

    /// A channel, also one whose deletion is under way.
    func entry(_ id: ChannelID) -> Entry? { entries[id] }

    func entry(_ id: ChannelID, of app: App) -> Entry? {
        guard let entry = entries[id], entry.app == app, !entry.isBeingDeleted else { return nil }
        return entry
    }

    /// The channels of an app, oldest first, then by identifier: the same order after a restart.
    func channels(of app: App) -> [Entry] {
        let found = byApp[app]?.ids.compactMap { entry($0, of: app) } ?? []
        return found.sorted { Self.rank($0.channel) < Self.rank($1.channel) }
    }

    private static func rank(_ channel: BroadcastChannel) -> (Int64, UInt64, UInt64) {
        (channel.created.milliseconds, channel.id.high, channel.id.low)
    }

    /// The channels of an app as JSON: `{"channels":["<base64>",…]}`.
    mutating func listing(of app: App) -> [UInt8] {
        guard var channels = byApp[app] else { return Array("{\"channels\":[]}".utf8) }
        if let listing = channels.listing { return listing }
        let names = self.channels(of: app).map { "\"\($0.channel.id.base64)\"" }.joined(separator: ",")
        let listing = Array("{\"channels\":[\(names)]}".utf8)
        channels.listing = listing
        byApp[app] = channels
        return listing
    }

    // MARK: - Creation and deletion

    /// Reserves a place for a new channel.
    ///
    /// - Returns: Whether the limits allow one more.
    mutating func reserve(for app: App) -> Bool {
        let channels = byApp[app] ?? AppChannels()
        guard channels.ids.count + channels.reserved < configuration.channelsPerApp,
            entries.count + reserved < configuration.channelsInAll
        else { return false }
        byApp[app, default: AppChannels()].reserved += 1
        reserved += 1
        return true
    }

    /// Gives back the reserved place of a channel: it was added, or could not be made.
    mutating func endReservation(for app: App) {
        reserved -= 1
        byApp[app]?.reserved -= 1
        dropIfEmpty(app)
    }

    /// Adds a channel, unless it is there.
    mutating func add(_ entry: Entry) {
        guard entries[entry.channel.id] == nil else { return }
        entries[entry.channel.id] = entry
        byApp[entry.app, default: AppChannels()].ids.insert(entry.channel.id)
        byApp[entry.app]?.listing = nil
    }

    /// Accepts nothing more for a channel, or everything again.
    mutating func setBeingDeleted(_ isBeingDeleted: Bool, _ id: ChannelID) {
        entries[id]?.isBeingDeleted = isBeingDeleted
        if let app = entries[id]?.app { byApp[app]?.listing = nil }
    }

    /// Takes a channel away.
    mutating func remove(_ id: ChannelID) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        byApp[entry.app]?.ids.remove(id)
        byApp[entry.app]?.listing = nil
        dropIfEmpty(entry.app)
    }

    private mutating func dropIfEmpty(_ app: App) {
        if let channels = byApp[app], channels.ids.isEmpty, channels.reserved == 0 { byApp[app] = nil }
    }

    // MARK: - Messages

    /// Sets the message for devices that subscribe now.
    mutating func setNewest(_ broadcast: Broadcast, isDurable: Bool) {
        entries[broadcast.channel]?.newest = broadcast
        if isDurable { entries[broadcast.channel]?.durable = broadcast }
    }

    /// Notes that a message is durable.
    mutating func stored(_ broadcast: Broadcast) {
        let durable = entries[broadcast.channel]?.durable?.number ?? 0
        if broadcast.number > durable { entries[broadcast.channel]?.durable = broadcast }
    }

    /// Goes back to the durable message after a write that failed.
    mutating func couldNotStore(_ broadcast: Broadcast) {
        guard let entry = entries[broadcast.channel], entry.newest?.number == broadcast.number else { return }
        entries[broadcast.channel]?.newest = entry.durable
    }

    mutating func forgetExpired(at now: WallTime) {
        for (id, entry) in entries {
            if entry.newest?.isExpired(at: now) ?? false { entries[id]?.newest = nil }
            if entry.durable?.isExpired(at: now) ?? false { entries[id]?.durable = nil }
        }
    }
}
