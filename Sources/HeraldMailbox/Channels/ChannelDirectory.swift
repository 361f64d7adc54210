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
    private var lastNumber: UInt64 = 0

    init(_ configuration: ChannelServiceConfiguration) {
        self.configuration = configuration
    }

    var count: Int { entries.count }

    var all: [Entry] { Array(entries.values) }

    func entry(_ id: ChannelID, of app: App) -> Entry? {
        guard let entry = entries[id], entry.app == app else { return nil }
        return entry
    }

    /// The channels of an app, oldest first, then by identifier: the same order after a restart.
    func channels(of app: App) -> [Entry] {
        let found = byApp[app]?.ids.compactMap { entries[$0] } ?? []
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

    /// Gives back the place of a channel that could not be made.
    mutating func cancelReservation(for app: App) {
        reserved -= 1
        byApp[app]?.reserved -= 1
        dropIfEmpty(app)
    }

    /// Adds a channel in its reserved place.
    mutating func fulfil(_ entry: Entry) {
        reserved -= 1
        byApp[entry.app]?.reserved -= 1
        add(entry)
    }

    /// Adds a channel.
    mutating func add(_ entry: Entry) {
        entries[entry.channel.id] = entry
        byApp[entry.app, default: AppChannels()].ids.insert(entry.channel.id)
        byApp[entry.app]?.listing = nil
        lastNumber = max(lastNumber, entry.durable?.number ?? 0)
    }

    /// Takes a channel away.
    mutating func remove(_ id: ChannelID, of app: App) -> Entry? {
        guard let entry = entry(id, of: app) else { return nil }
        entries[id] = nil
        byApp[app]?.ids.remove(id)
        byApp[app]?.listing = nil
        dropIfEmpty(app)
        return entry
    }

    private mutating func dropIfEmpty(_ app: App) {
        if let channels = byApp[app], channels.ids.isEmpty, channels.reserved == 0 { byApp[app] = nil }
    }

    // MARK: - Messages

    /// The number of the next broadcast: greater than every other, also from before a restart, because numbers follow the
    /// clock.
    mutating func nextNumber(now: WallTime) -> UInt64 {
        lastNumber = max(lastNumber + 1, Broadcast.firstNumber(at: now))
        return lastNumber
    }

    mutating func setNewest(_ broadcast: Broadcast) {
        entries[broadcast.channel]?.newest = broadcast
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

    /// Forgets what expired.
    mutating func forgetExpired(at now: WallTime) {
        for (id, entry) in entries {
            if entry.newest?.isExpired(at: now) ?? false { entries[id]?.newest = nil }
            if entry.durable?.isExpired(at: now) ?? false { entries[id]?.durable = nil }
        }
    }
}
