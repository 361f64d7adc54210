import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Logging
import Synchronization
import Testing

@testable import HeraldStores

/// A flood of notifications while the disk is stalled: prompt refusals, bounded memory, and full recovery.
struct FloodTests {
    private final class Answers: CompletionHandler {
        private let outcomes = Mutex<[CompletionOutcome: Int]>([:])

        func settle(_ number: UInt64, _ outcome: CompletionOutcome) {
            outcomes.withLock { $0[outcome, default: 0] += 1 }
        }

        var all: [CompletionOutcome: Int] { outcomes.withLock { $0 } }
    }

    private struct Scene {
        let fixture: SQLiteFixture
        let postOffice: PostOffice
        let answers = Answers()
        let now: WallTime

        init(
            _ store: SQLiteStoreConfiguration,
            _ post: PostOfficeConfiguration = PostOfficeConfiguration()
        ) async throws {
            let clock = ManualClock()
            now = clock.now()
            fixture = try SQLiteFixture(clock: clock, configuration: store)
            postOffice = PostOffice(
                configuration: post,
                clock: clock,
                store: fixture.sqlite,
                directory: SingleNodeDirectory(),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            )
            fixture.sqlite.report(to: postOffice)
            for device in 0..<500 as Range<UInt64> {
                postOffice.setRegistration(
                    Registration(slot: StoreScene.slot(device), generation: 0, isLive: true, registered: now)
                )
            }
        }

        /// Posts notifications, and counts the accepted ones.
        func flood(_ count: Int, payloadBytes: Int) -> (taken: Int, refused: Int) {
            var taken = 0
            var refused = 0
            for number in 0..<UInt64(count) {
                let notification = Notification(
                    id: NotificationID(high: 1, low: number),
                    uniqueID: NotificationID(high: 2, low: number),
                    slot: StoreScene.slot(number % 500),
                    received: now,
                    storedUntil: now + .seconds(3600),
                    priority: .immediate,
                    pushType: .alert,
                    collapseID: nil,
                    payload: [UInt8](repeating: 0x20, count: payloadBytes)
                )
                let envelope = Envelope(notification, completion: Completion(handler: answers, number: number))
                switch postOffice.post(envelope) {
                case .pending: taken += 1
                case .refused(.serviceUnavailable, _): refused += 1
                case let other: Issue.record("\(other)")
                }
            }
            return (taken, refused)
        }

        /// Waits until every accepted notification has its answer.
        func settled(_ count: Int) async throws {
            while answers.all.values.reduce(0, +) < count { try await fixture.sqlite.change { _, _ in } }
            // Once more: by then the reported commit has released its memory.
            try await fixture.sqlite.change { _, _ in }
        }
    }

    @Test
    func
        `with a stalled disk, puts beyond the backlog are refused, and accepted ones are stored afterwards`()
        async throws
    {
        var configuration = SQLiteFixture.configuration
        configuration.backlogLimit = 1000
        let scene = try await Scene(configuration)
        scene.fixture.disk.setStopped(true)
        let (taken, refused) = scene.flood(20_000, payloadBytes: 1000)
        // Each also adds a journal event.
        #expect((300...1000).contains(taken) && refused == 20_000 - taken)
        #expect(scene.postOffice.memory.current <= taken * 1512)
        scene.fixture.disk.setStopped(false)
        try await scene.settled(taken)
        #expect(scene.answers.all == [.accepted: taken])
        #expect(scene.postOffice.isAccepting && scene.flood(100, payloadBytes: 1000).refused == 0)
        try await scene.settled(taken + 100)
        #expect(scene.postOffice.memory.current == 0)
        await scene.fixture.close()
    }

    @Test func `large notifications count by their bytes`() async throws {
        var configuration = SQLiteFixture.configuration
        configuration.backlogByteLimit = 1 << 20
        let scene = try await Scene(configuration)
        scene.fixture.disk.setStopped(true)
        let (taken, _) = scene.flood(20_000, payloadBytes: 4096)
        #expect((250...600).contains(taken))
        scene.fixture.disk.setStopped(false)
        try await scene.settled(taken)
        await scene.fixture.close()
    }

    @Test func `memory is bounded across the service, whatever the store accepts`() async throws {
        var limits = PostOfficeConfiguration()
        limits.notificationBytes = 1 << 20
        let scene = try await Scene(SQLiteFixture.configuration, limits)
        scene.fixture.disk.setStopped(true)
        let (taken, refused) = scene.flood(20_000, payloadBytes: 4096)
        #expect(taken <= (1 << 20) / 4608 + 1 && refused == 20_000 - taken)
        #expect(scene.postOffice.memory.current <= (1 << 20) + 4608)
        scene.fixture.disk.setStopped(false)
        try await scene.settled(taken)
        #expect(scene.postOffice.memory.current == 0 && scene.postOffice.isAccepting)
        await scene.fixture.close()
    }

    @Test func `a flood without stored notifications is limited by its journal events`() async throws {
        var configuration = SQLiteFixture.configuration
        configuration.backlogLimit = 1000
        let scene = try await Scene(configuration)
        scene.fixture.disk.setStopped(true)
        var taken = 0
        for number in 0..<20_000 as Range<UInt64> {
            let notification = Notification(
                id: NotificationID(high: 1, low: number),
                uniqueID: NotificationID(high: 2, low: number),
                slot: StoreScene.slot(number % 500),
                received: scene.now,
                storedUntil: nil,
                priority: .immediate,
                pushType: .alert,
                collapseID: nil,
                payload: []
            )
            let envelope = Envelope(notification)
            let isOnce = number.isMultiple(of: 2)
            let decision =
                isOnce
                ? scene.postOffice.post(envelope)
                : scene.postOffice.discard(envelope, as: .discardedUndeliverable)
            if case .refused(.serviceUnavailable, _) = decision { continue }
            taken += 1
        }
        #expect(taken <= 1000)
        scene.fixture.disk.setStopped(false)
        try await scene.fixture.sqlite.change { _, _ in }
        await scene.fixture.close()
    }
}
