import Dispatch
import HeraldMailbox
import HeraldModel
import Synchronization

/// A store that keeps nothing but numbers: what the courier and the post office cost by themselves.
///
/// Journal lines are dropped, and a put is reported as stored as soon as a queue of its own gets to it.
final class NoStore: MailboxStore, JournalStore, RegistryStore, ChannelStore {
    private struct Contents {
        var reporter: (any MailboxStoreReporter)?
        var sequence: UInt64 = 0
        var devices: [DeviceID: DeviceNumber] = [:]
        var apps: [App: AppNumber] = [:]
        var registrations: [Slot: Registration] = [:]
    }

    private let contents = Mutex(Contents())
    private let queue = DispatchQueue(label: "no-store")

    // The mailbox.

    var isAccepting: Bool { true }

    var count: Int { 0 }

    func report(to reporter: any MailboxStoreReporter) {
        contents.withLock { $0.reporter = reporter }
    }

    func put(_ envelope: Envelope, reason: StoreReason, tag: PutTag?, isNew: Bool) {
        let (reporter, sequence) = contents.withLock { contents in
            contents.sequence += 1
            return (contents.reporter, contents.sequence)
        }
        // Called under a shard's lock, which the report takes too.
        queue.async { reporter?.stored([StoredPut(envelope: envelope, sequence: sequence, tag: tag)]) }
    }

    func remove(_ slot: RegisteredSlot, sequence: UInt64, event: JournalEvent?) {
        // There is nothing.
    }

    func read(
        _ slots: [RegisteredSlot],
        _ done: @escaping @Sendable (Result<[StoredNotification], any Error>) -> Void
    ) {
        queue.async { done(.success([])) }
    }

    func removeExpired(at moment: WallTime, limit: Int) async throws -> Int { 0 }

    // The journal.

    func record(_ events: [JournalEvent]) {
        // Dropped.
    }

    func record(_ event: JournalEvent, settling completion: Completion?) {
        guard let completion else { return }
        queue.async { completion.settle(.accepted) }
    }

    func lines(matching query: JournalQuery, limit: Int) async throws -> [JournalEvent] { [] }

    func trim(before moment: WallTime, maximumBytes: Int) async throws {
        // There is nothing.
    }

    // The registry.

    func loadRegistry() async throws -> RegistrySnapshot { RegistrySnapshot() }

    func number(of device: DeviceID) async throws -> DeviceNumber {
        contents.withLock { contents in
            let number = contents.devices[device] ?? DeviceNumber(UInt64(contents.devices.count) + 1)
            contents.devices[device] = number
            return number
        }
    }

    func number(of app: App, for origin: AppOrigin?, at moment: WallTime) async throws -> AppNumber {
        contents.withLock { contents in
            let number = contents.apps[app] ?? AppNumber(UInt32(contents.apps.count) + 1)
            contents.apps[app] = number
            return number
        }
    }

    func register(_ slot: Slot, at moment: WallTime, fence: UInt64) async throws -> Registration {
        contents.withLock { contents in
            let registration =
                contents.registrations[slot]
                ?? Registration(slot: slot, generation: 1, isLive: true, registered: moment)
            contents.registrations[slot] = registration
            return registration
        }
    }

    func unregister(_ slot: Slot, at moment: WallTime, fence: UInt64) async throws {
        contents.withLock { $0.registrations[slot] = nil }
    }

    func appUsages(_ app: AppNumber?) async throws -> [AppUsage] { [] }

    func forgetApp(_ app: AppNumber, at moment: WallTime) async throws -> [Slot] { [] }

    func forgetEnded(_ device: DeviceNumber, keeping limit: Int) async throws -> [Slot] { [] }

    func setEnabled(_ enabled: Bool, for slot: Slot, fence: UInt64) async throws {
        // No device of the benchmark asks for it.
    }

    func setSavingPower(_ saving: Bool, for device: DeviceNumber, fence: UInt64) async throws {
        // No device of the benchmark asks for it.
    }

    func readDeviceRecord(
        _ device: DeviceNumber,
        fence: UInt64,
        _ done: @escaping @Sendable (Result<DeviceRecord, any Error>) -> Void
    ) {
        done(.success(DeviceRecord()))
    }

    func setSession(
        _ session: SessionRecord?,
        for device: DeviceNumber,
        fence: UInt64,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        // Sessions end with their connection here.
        done(.success(()))
    }

    func addFeedback(_ record: FeedbackRecord, _ done: @escaping @Sendable (Result<Void, any Error>) -> Void) {
        // No provider of the benchmark sends to a removed app.
        done(.success(()))
    }

    func feedback(for app: AppNumber, limit: Int) async throws -> [FeedbackRecord] { [] }

    func clearFeedback(_ records: [FeedbackRecord]) async throws {
        // There are none.
    }

    func follow(_ sink: any ChannelSink) async throws {}
    func loadChannels() async throws -> [StoredChannel] { [] }
    func createChannel(_ channel: BroadcastChannel) async throws {}
    func deleteChannel(_ id: ChannelID, at moment: WallTime) async throws {}
    func publish(
        _ broadcast: Broadcast,
        at moment: WallTime,
        _ done: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        done(.success(()))
    }
    func removeExpiredBroadcasts(at moment: WallTime) async throws {}
}
