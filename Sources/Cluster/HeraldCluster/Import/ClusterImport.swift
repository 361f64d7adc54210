package import HeraldMailbox
package import HeraldModel

/// Takes everything that the store of a single machine, or of a backup, has of its devices into the empty streams of a
/// cluster.
///
/// Numbers and generations stay, so that every device token stays valid. The journal is not part of it.
package struct ClusterImport: Sendable {
    package typealias Source = MailboxStore & RegistryStore & ChannelStore

    /// The counts of what was taken.
    package struct Summary: Hashable, Sendable, Codable {
        package var devices = 0
        package var apps = 0
        /// Live and ended ones.
        package var registrations = 0
        package var channels = 0
        /// Waiting notifications.
        package var notifications = 0
    }

    /// Devices, or slots, that are read together.
    private static let slice = 1000

    private let source: any Source
    private let generationFloor: UInt32
    private let appends: BulkAppends
    private let partitions: Partitions
    private let node: NodeName
    private let now: WallTime

    /// Takes a store that nothing else uses, with its least generation of a new registration, into a log with empty
    /// streams.
    ///
    /// `node` is the one that has the journal of the store. `patience` is the time for each record.
    package init(
        from source: any Source,
        generationFloor: UInt32,
        to log: any ReplicatedLog,
        _ partitions: Partitions,
        node: NodeName,
        now: WallTime,
        patience: Duration = BulkAppends.patience
    ) {
        self.source = source
        self.generationFloor = generationFloor
        appends = BulkAppends(log, patience: patience)
        self.partitions = partitions
        self.node = node
        self.now = now
    }

    /// Takes everything.
    /// - Throws: If the store cannot be read, or the log not be written.
    package func run() async throws -> Summary {
        while try await source.removeExpired(at: now, limit: Self.slice) == Self.slice {}
        try await source.removeExpiredBroadcasts(at: now)
        let registry = try await source.loadRegistry()
        var summary = Summary()
        summary.apps = try await takeApps(registry.apps)
        let apps = Set(registry.apps.map(\.number))
        let devices = Set(registry.devices.map(\.1))
        // Those of damaged apps and devices could never be used.
        let registrations = registry.registrations.filter {
            apps.contains($0.slot.app) && devices.contains($0.slot.device)
        }
        summary.registrations = registrations.count
        let feedback = try await feedback(of: apps)
        let byDevice = Dictionary(grouping: registrations, by: \.slot.device)
        summary.devices = registry.devices.count
        for devices in registry.devices.chunks(ofCount: Self.slice) {
            try await takeDevices(devices, byDevice, feedback)
        }
        summary.channels = try await takeChannels(of: apps)
        for served in registrations.filter({ $0.isLive && $0.isEnabled }).chunks(ofCount: Self.slice) {
            summary.notifications += try await takeNotifications(of: served)
        }
        return summary
    }

    private func takeApps(_ apps: [AppRecord]) async throws -> Int {
        // Later apps get numbers that none of the source had, and probably none that it gave since it was copied.
        let next = CounterRecord(next: .random(in: 1 << 20..<1 << 31))
        try await appends.append(
            apps.map { .init(LogMessage(.app($0.app), payload: $0.body), to: .apps) }
                + [.init(LogMessage(ClusterNumbers.nextApp, payload: next.body), to: .meta)]
        )
        return apps.count
    }

    private func feedback(of apps: Set<AppNumber>) async throws -> [DeviceNumber: [FeedbackRecord]] {
        var records: [DeviceNumber: [FeedbackRecord]] = [:]
        for app in apps {
            for record in try await source.feedback(for: app, limit: .max) {
                records[record.slot.device, default: []].append(record)
            }
        }
        return records
    }

    private func takeDevices(
        _ devices: ArraySlice<(DeviceID, DeviceNumber)>,
        _ registrations: [DeviceNumber: [Registration]],
        _ feedback: [DeviceNumber: [FeedbackRecord]]
    ) async throws {
        var messages: [BulkAppends.Message] = []
        for (id, number) in devices {
            var record = try await source.deviceRecord(number)
            record.sequence = nil
            // They are numbers of the former broadcasts.
            record.session?.broadcasts = nil
            let key = DeviceHash(id)
            let place = partitions.partition(of: key)
            let entry = DeviceLogRecord(id: id, number: number, record: record)
            messages.append(.init(LogMessage(.device(key, place), payload: entry.body), to: .devices(place)))
            let all = DeviceRegistrations(
                number,
                registrations[number] ?? [],
                feedback: feedback[number] ?? [],
                generationFloor: generationFloor
            )
            guard !all.isEmpty else { continue }
            let share = partitions.partition(of: number)
            let message = LogMessage(.registrations(number, share), payload: all.body)
            messages.append(.init(message, to: .registrations(share)))
        }
        try await appends.append(messages)
    }

    private func takeChannels(of apps: Set<AppNumber>) async throws -> Int {
        let channels = try await source.loadChannels().filter { apps.contains($0.channel.app) }
        // Their order is that of their creation.
        for stored in channels {
            let channel = stored.channel
            try await appends.append([.init(LogMessage(.channel(channel.id), payload: channel.body), to: .channels)])
            guard let newest = stored.newest, let storedUntil = newest.storedUntil, storedUntil > now else { continue }
            let message = LogMessage(
                .broadcasts(channel.id, isStored: true),
                payload: BroadcastRecord(node: node, broadcast: newest.numbered(0)).body,
                timeToLive: (storedUntil - now) + ClusterLimits.timeToLiveSlack
            )
            try await appends.append([.init(message, to: .broadcasts)])
        }
        return channels.count
    }

    private func takeNotifications(of registrations: ArraySlice<Registration>) async throws -> Int {
        let waiting = try await source.waiting(
            in: registrations.map { RegisteredSlot($0.slot, generation: $0.generation) }
        )
        let messages = waiting.compactMap { stored -> BulkAppends.Message? in
            let notification = stored.notification
            guard notification.storedUntil.map({ $0 > now }) ?? true else { return nil }
            let partition = partitions.partition(of: notification.slot.device)
            let rest = max((notification.storedUntil ?? notification.received) - now, .zero)
            let message = LogMessage(
                .slot(notification.slot, generation: stored.generation, partition),
                payload: SlotRecord(notification).body,
                timeToLive: rest + ClusterLimits.timeToLiveSlack
            )
            return BulkAppends.Message(message, to: .mailbox(partition))
        }
        try await appends.append(messages)
        return messages.count
    }
}
