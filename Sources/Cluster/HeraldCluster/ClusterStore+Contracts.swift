package import HeraldMailbox
package import HeraldModel

extension ClusterStore: MailboxStore {
    package var isAccepting: Bool { mailbox.isAccepting }

    package func isAccepting(for device: DeviceNumber) -> Bool { mailbox.isAccepting(for: device) }

    package var isOverloaded: Bool { mailbox.isOverloaded }

    package var count: Int { mailbox.count }

    package func report(to reporter: any MailboxStoreReporter) { mailbox.report(to: reporter) }

    package func put(_ envelope: Envelope, reason: StoreReason, tag: PutTag?, isNew: Bool) {
        mailbox.put(envelope, reason: reason, tag: tag, isNew: isNew)
    }

    package func remove(_ slot: RegisteredSlot, sequence: UInt64, event: JournalEvent?) {
        mailbox.remove(slot, sequence: sequence, event: event)
    }

    package func read(
        _ slots: [RegisteredSlot],
        _ done: @escaping @Sendable (Result<[StoredNotification], any Error>) -> Void
    ) {
        mailbox.read(slots, done)
    }

    package func removeExpired(at moment: WallTime, limit: Int) async throws -> Int {
        try await mailbox.removeExpired(at: moment, limit: limit)
    }
}

extension ClusterStore: JournalStore {
    package func record(_ events: [JournalEvent]) { context.journal.record(events) }

    package func record(_ event: JournalEvent, settling completion: Completion?) {
        context.journal.record(event, settling: completion)
    }

    package func recordRefusal(_ event: JournalEvent) -> Bool { context.journal.recordRefusal(event) }

    package func lines(matching query: JournalQuery, limit: Int) async throws -> [JournalEvent] {
        try await context.journal.lines(matching: query, limit: limit)
    }

    package func trim(before moment: WallTime, maximumBytes: Int) async throws {
        try await context.journal.trim(before: moment, maximumBytes: maximumBytes)
    }
}

extension ClusterStore: ChannelStore {
    package func follow(_ sink: any ChannelSink) async throws { channels.report(to: sink) }

    package func loadChannels() async throws -> [StoredChannel] { channels.stored() }

    package func createChannel(_ channel: BroadcastChannel) async throws { try await channels.create(channel) }

    package func deleteChannel(_ id: ChannelID, at moment: WallTime) async throws {
        try await channels.delete(id, at: moment)
    }

    package func publish(
        _ broadcast: Broadcast,
        at moment: WallTime,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        channels.publish(broadcast, at: moment, done)
    }

    package func removeExpiredBroadcasts(at moment: WallTime) async throws { channels.removeExpired(at: moment) }
}

extension ClusterStore: RegistryStore {
    package var shared: (any SharedState)? { self }

    package func loadRegistry() async throws -> RegistrySnapshot { registry.snapshot(reports: true) }

    package func follow(_ sink: any RegistrySink) { registry.reports.begin(sink) }

    package func number(of device: DeviceID) async throws -> DeviceNumber { try await registry.number(of: device) }

    package func number(of app: App, for origin: AppOrigin?, at moment: WallTime) async throws -> AppNumber {
        try await registry.number(of: app, for: origin, at: moment)
    }

    package func appUsages(_ app: AppNumber?) async throws -> [AppUsage] {
        if app != nil {
            // Whoever forgets an app must know every device that has it.
            try await catchUp(.allRegistrations)
            try await catchUp(.channels)
        }
        return registry.appUsages(app, channels: channels.counts())
    }

    package func forgetApp(_ app: AppNumber, at moment: WallTime) async throws -> [Slot] {
        let ended = try await registry.forgetApp(app)
        for registration in ended {
            let slot = RegisteredSlot(registration.slot, generation: registration.generation)
            await discard(slot, as: .discardedUnregisteredFromStorage, at: moment)
        }
        return ended.map(\.slot)
    }

    package func register(_ slot: Slot, at moment: WallTime, fence: UInt64) async throws -> Registration {
        try await registry.register(slot, at: moment, fence: fence)
    }

    package func unregister(_ slot: Slot, at moment: WallTime, fence: UInt64) async throws {
        guard let registration = try await registry.unregister(slot, at: moment, fence: fence) else { return }
        let ended = RegisteredSlot(slot, generation: registration.generation)
        await discard(ended, as: .discardedUnregisteredFromStorage, at: moment)
    }

    package func forgetEnded(_ device: DeviceNumber, keeping limit: Int) async throws -> [Slot] {
        try await registry.forgetEnded(device, keeping: limit)
    }

    package func setEnabled(_ enabled: Bool, for slot: Slot, fence: UInt64) async throws {
        // Read before the change: what is stored later may have come after the app was enabled again, at another node.
        let waiting = enabled ? [] : await waiting(slot)
        try await registry.setEnabled(enabled, for: slot, fence: fence)
        for stored in waiting { remove(stored, as: .discardedDisabledFromStorage, at: context.clock.now()) }
    }

    package func setSavingPower(_ saving: Bool, for device: DeviceNumber, fence: UInt64) async throws {
        try await registry.setSavingPower(saving, for: device, fence: fence)
    }

    package func readDeviceRecord(
        _ device: DeviceNumber,
        fence: UInt64,
        _ done: @escaping @Sendable (Result<DeviceRecord, any Error>) -> Void
    ) {
        registry.readDeviceRecord(device, fence: fence, done)
    }

    package func beginSession(
        _ session: SessionRecord?,
        replacing read: DeviceRecord,
        of device: DeviceNumber,
        fence: UInt64,
        _ done: @escaping @Sendable (Result<SessionBeginning, any Error>) -> Void
    ) {
        registry.beginSession(session, replacing: read, of: device, fence: fence, done)
    }

    package func setSession(
        _ session: SessionRecord?,
        for device: DeviceNumber,
        fence: UInt64,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        registry.setSession(session, for: device, fence: fence, done)
    }

    package func addFeedback(_ record: FeedbackRecord, _ done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        registry.addFeedback(record, done)
    }

    package func feedback(for app: AppNumber, limit: Int) async throws -> [FeedbackRecord] {
        await registry.feedback(for: app, limit: limit)
    }

    package func clearFeedback(_ records: [FeedbackRecord]) async throws {
        try await registry.clearFeedback(records)
    }
}

extension ClusterStore: SharedState {
    package func catchUp(_ part: SharedPart, _ done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        let done = context.scheduler.bounded(within: ClusterLimits.catchUpTime, failing: LogFailure.behind, done)
        switch part {
        case .channels:
            // A channel is found by the name of its app.
            registry.catchUp([.apps]) { [channels] result in
                if case .failure = result { done(result) } else { channels.catchUp(done) }
            }
        case .trust:
            if let trust { trust.catchUp(part, done) } else { done(.success(())) }
        case .apps, .registrations, .allRegistrations: registry.catchUp(registry.streams(of: part), done)
        }
    }

    package func isBehind(_ part: SharedPart) -> Bool {
        switch part {
        case .registrations(let device): registry.isBehind(device, at: context.scheduler.now)
        case .channels: channels.isBehind
        case .trust: trust?.isBehind(part) ?? false
        case .apps, .allRegistrations: false
        }
    }
}
