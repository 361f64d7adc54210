import HeraldModel
import HeraldTestSupport
import Logging
import Synchronization
import Testing

@testable import HeraldMailbox

/// A post office on a store in memory with one device; a test moves the clock, commits and acknowledges.
final class PostOfficeScene: Sendable {
    final class Link: DeviceLink {
        private let delivered = Mutex<[Delivery]>([])

        func deliver(_ delivery: Delivery) { delivered.withLock { $0.append(delivery) } }
        func dismiss(_ reason: DismissalReason) {}

        /// The deliveries since the last call.
        func take() -> [Delivery] {
            delivered.withLock { delivered in
                defer { delivered = [] }
                return delivered
            }
        }
    }

    final class CompletionLog: CompletionHandler {
        let settled = Mutex<[CompletionOutcome]>([])

        func settle(_ number: UInt64, _ outcome: CompletionOutcome) { settled.withLock { $0.append(outcome) } }
    }

    let clock = ManualClock()
    let store: MemoryStore
    let postOffice: PostOffice
    let registry: Registry
    let completions = CompletionLog()
    let slot: Slot
    private let running: Task<Void, Never>
    private let fence = Atomic<UInt64>(0)
    private let lastID = Atomic<UInt64>(0)

    init(
        logger: Logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
        _ adjust: (inout PostOfficeConfiguration) -> Void = { _ in }
    ) async throws {
        var configuration = PostOfficeConfiguration()
        // Only a test's own ticks.
        configuration.acknowledgementTick = .seconds(86_400)
        adjust(&configuration)
        let store = MemoryStore(clock: clock, isManual: true)
        let directory = SingleNodeDirectory()
        postOffice = PostOffice(
            configuration: configuration,
            clock: clock,
            store: store,
            directory: directory,
            logger: logger
        )
        store.report(to: postOffice)
        self.store = store
        registry = Registry(
            store: store,
            postOffice: postOffice,
            directory: directory,
            clock: clock,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        running = Task { [postOffice] in await postOffice.run() }
        let id = try #require(DeviceID("device"))
        let topic = try #require(Topic("com.example.magazine"))
        let device = try await registry.arrive(id).number
        let app = App(topic: topic, environment: .production)
        slot = try #require(await registry.register([app], on: device)[app]).get().slot
    }

    deinit { running.cancel() }

    /// Connects the device, which subscribes and is sent what waits.
    func connect(saving: Bool = false) async throws -> Link {
        let link = Link()
        let fence = fence.wrappingAdd(1, ordering: .relaxed).newValue
        postOffice.attach(slot.device, link: link, isSavingPower: saving, fence: fence)
        postOffice.open([AppSubscription(slot.app, qualityOfService: 1)], on: slot.device, fence: fence)
        try await settle()
        return link
    }

    func post(
        _ pushType: PushType = .background,
        priority: Priority = .conserving,
        stored: Bool = true
    ) -> (PostDecision, Envelope) {
        let number = lastID.wrappingAdd(1, ordering: .relaxed).newValue
        let now = clock.now()
        let notification = Notification(
            id: NotificationID(high: 1, low: number),
            uniqueID: NotificationID(high: 2, low: number),
            slot: slot,
            received: now,
            storedUntil: stored ? now + .seconds(30 * 86_400) : nil,
            priority: priority,
            pushType: pushType,
            collapseID: nil,
            payload: Array("{}".utf8)
        )
        let envelope = Envelope(notification, completion: Completion(handler: completions, number: number))
        return (postOffice.post(envelope), envelope)
    }

    func acknowledge(_ deliveries: [Delivery]) {
        let fence = fence.load(ordering: .relaxed)
        for delivery in deliveries {
            postOffice.finished(slot, fence: fence, delivery: delivery.number, result: .acknowledged)
        }
    }

    func disconnect() {
        postOffice.detach(slot.device, fence: fence.load(ordering: .relaxed))
    }

    func setSaving(_ saving: Bool) async throws {
        let fence = fence.load(ordering: .relaxed)
        postOffice.setSavingPower(saving, device: slot.device, fence: fence)
        try await settle()
    }

    /// Moves the clock, and lets what it releases come.
    func pass(_ duration: Duration) async throws {
        clock.advance(by: duration)
        postOffice.release()
        try await settle()
    }

    /// Lets every commit and every read finish.
    func settle() async throws {
        for _ in 0..<3 {
            store.flush()
            while postOffice.readCount > 0 { store.flush() }
        }
        store.flush()
    }

    var states: [JournalState] { store.journal.map(\.state) }
}

extension [Delivery] {
    var ids: [UInt64] { map(\.envelope.notification.id.low) }
}

extension DeliveryShard {
    mutating func open(_ slot: Slot, fence: UInt64, qualityOfService: UInt8) {
        open([AppSubscription(slot.app, qualityOfService: qualityOfService)], on: slot.device, fence: fence)
    }
}
