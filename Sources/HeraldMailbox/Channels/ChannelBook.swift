import HeraldModel

/// All channels of a service: decides about them; a value without clock, store or lock.
struct ChannelBook {
    struct Entry {
        let channel: BroadcastChannel
        let app: App
        let feed: ChannelFeed
        /// The newest message that is to be stored, durable or not: what a device that subscribes now gets.
        var newest: Broadcast?
        /// The newest message that the store has.
        var durable: Broadcast?
    }

    private struct Shelf {
        var channels: Set<ChannelID> = []
        /// How many are being made.
        var reserved = 0
        /// The answer to those who list them, as long as nothing changes: a thousand who ask at once share it.
        var listing: [UInt8]?
    }

    private let configuration: ChannelOfficeConfiguration
    private var entries: [ChannelID: Entry] = [:]
    private var shelves: [App: Shelf] = [:]
    private var reserved = 0
    private var lastNumber: UInt64 = 0

    init(_ configuration: ChannelOfficeConfiguration) {
        self.configuration = configuration
    }

    var count: Int { entries.count }

    var all: [Entry] { Array(entries.values) }

    func entry(_ id: ChannelID, of app: App) -> Entry? {
        guard let entry = entries[id], entry.app == app else { return nil }
        return entry
    }

    /// The channels of an app, oldest first; those of one millisecond in the order of their identifiers, so that it is
    /// the same order after a restart.
    func channels(of app: App) -> [Entry] {
        let found = shelves[app]?.channels.compactMap { entries[$0] } ?? []
        return found.sorted { Self.rank($0.channel) < Self.rank($1.channel) }
    }

    private static func rank(_ channel: BroadcastChannel) -> (Int64, UInt64, UInt64) {
        (channel.created.milliseconds, channel.id.high, channel.id.low)
    }

    /// The channels of an app as the answer to those who list them: `{"channels":["<base64>",…]}`.
    mutating func listing(of app: App) -> [UInt8] {
        guard var shelf = shelves[app] else { return Array("{\"channels\":[]}".utf8) }
        if let listing = shelf.listing { return listing }
        let names = channels(of: app).map { "\"\($0.channel.id.base64)\"" }.joined(separator: ",")
        let listing = Array("{\"channels\":[\(names)]}".utf8)
        shelf.listing = listing
        shelves[app] = shelf
        return listing
    }

    // Making and deleting.

    /// Keeps a place for a channel that is to be made.
    ///
    /// - Returns: Whether the app may have another.
    mutating func reserve(for app: App) -> Bool {
        let shelf = shelves[app] ?? Shelf()
        guard shelf.channels.count + shelf.reserved < configuration.channelsPerApp,
            entries.count + reserved < configuration.channelsInAll
        else { return false }
        shelves[app, default: Shelf()].reserved += 1
        reserved += 1
        return true
    }

    /// The channel for which a place was kept could not be made.
    mutating func giveUp(for app: App) {
        reserved -= 1
        shelves[app]?.reserved -= 1
        dropIfEmpty(app)
    }

    /// The channel for which a place was kept is made.
    mutating func fulfil(_ entry: Entry) {
        reserved -= 1
        shelves[entry.app]?.reserved -= 1
        add(entry)
    }

    /// Adds a channel.
    mutating func add(_ entry: Entry) {
        entries[entry.channel.id] = entry
        shelves[entry.app, default: Shelf()].channels.insert(entry.channel.id)
        shelves[entry.app]?.listing = nil
        lastNumber = max(lastNumber, entry.durable?.number ?? 0)
    }

    /// Takes a channel away.
    mutating func remove(_ id: ChannelID, of app: App) -> Entry? {
        guard let entry = entry(id, of: app) else { return nil }
        entries[id] = nil
        shelves[app]?.channels.remove(id)
        shelves[app]?.listing = nil
        dropIfEmpty(app)
        return entry
    }

    private mutating func dropIfEmpty(_ app: App) {
        if let shelf = shelves[app], shelf.channels.isEmpty, shelf.reserved == 0 { shelves[app] = nil }
    }

    // Messages.

    /// The number of the next broadcast: greater than that of every other, also of those before a restart, which the
    /// clock sees to where no message was stored.
    mutating func nextNumber(now: WallTime) -> UInt64 {
        lastNumber = max(lastNumber + 1, Broadcast.firstNumber(at: now))
        return lastNumber
    }

    mutating func setNewest(_ broadcast: Broadcast) {
        entries[broadcast.channel]?.newest = broadcast
    }

    /// A message is stored.
    mutating func haveKept(_ broadcast: Broadcast) {
        let durable = entries[broadcast.channel]?.durable?.number ?? 0
        if broadcast.number > durable { entries[broadcast.channel]?.durable = broadcast }
    }

    /// A message could not be stored: nothing of it is kept.
    mutating func couldNotKeep(_ broadcast: Broadcast) {
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
