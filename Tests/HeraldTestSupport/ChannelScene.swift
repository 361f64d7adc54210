package import HeraldMailbox
package import HeraldModel
import Logging
import Synchronization

/// Channels on a store in memory: what tests of doors and of the courier stand on.
package final class ChannelScene: Sendable {
    package let clock: ManualClock
    package let store: MemoryStore
    package let apps = NumberedApps()
    package let receipts = ReceiptTray()
    package let load: LetterLoad
    package let office: ChannelOffice

    package init(
        configuration: ChannelOfficeConfiguration = ChannelOfficeConfiguration(),
        clock: ManualClock = ManualClock(),
        load: LetterLoad = LetterLoad(limit: 1 << 30)
    ) {
        self.clock = clock
        self.load = load
        store = MemoryStore(clock: clock)
        office = ChannelScene.office(configuration, clock, store, apps, load)
    }

    private static func office(
        _ configuration: ChannelOfficeConfiguration,
        _ clock: ManualClock,
        _ store: MemoryStore,
        _ apps: NumberedApps,
        _ load: LetterLoad
    ) -> ChannelOffice {
        ChannelOffice(
            configuration: configuration,
            clock: clock,
            store: store,
            apps: apps,
            load: load,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
    }

    /// Another service on the same store.
    package func restarted() async throws -> ChannelOffice {
        let office = ChannelScene.office(ChannelOfficeConfiguration(), clock, store, apps, load)
        try await office.load()
        return office
    }

    /// Runs `body` while the office does what has to wait.
    package func run(_ body: () async throws -> Void) async throws {
        try await withThrowingTaskGroup { group in
            group.addTask { await self.office.run() }
            try await body()
            group.cancelAll()
        }
    }

    /// A channel that was there before: of an app, with an identifier that follows from a number.
    package static func id(_ number: UInt64) -> ChannelID { ChannelID(high: 0xCAFE, low: number) }

    /// Puts channels into the store and has the office load them; once.
    package func load(_ channels: [(UInt64, App, MessageStoragePolicy)]) async throws {
        for (number, app, storage) in channels {
            let app = try await apps.makeNumber(of: app)
            let id = ChannelScene.id(number)
            try await store.createChannel(
                BroadcastChannel(id: id, app: app, storage: storage, created: clock.now())
            )
        }
        try await office.load()
    }

    /// A message to a channel, whose identifiers follow from a number.
    package func post(
        _ number: UInt64,
        to channel: UInt64,
        of app: App,
        for duration: Duration? = nil,
        priority: Priority = .immediate
    ) -> BroadcastPost {
        BroadcastPost(
            channel: ChannelScene.id(channel),
            app: app,
            id: NotificationID(high: 0xE, low: number),
            uniqueID: NotificationID(high: 0xF, low: number),
            received: clock.now(),
            storedUntil: duration.map { clock.now() + $0 },
            priority: priority,
            payload: Array("{\"aps\":{\"n\":\(number)}}".utf8)
        )
    }

    /// Publishes, and waits for the receipt where there is one to come.
    package func publish(_ post: BroadcastPost) async -> ReceiptOutcome {
        let receipt = receipts.receipt()
        switch office.publish(post, receipt: receipt) {
        case .accepted: return .accepted
        case .refused(let rejection, _): return .refused(rejection)
        case .pending: return await receipts.outcome(of: receipt)
        }
    }
}

/// Gives apps numbers in the order in which they are asked for.
package final class NumberedApps: AppNumbers {
    private let known = Mutex<[App]>([])

    package init() {}

    package func app(_ number: AppNumber) -> App? {
        known.withLock { $0.indices.contains(Int(number.value) - 1) ? $0[Int(number.value) - 1] : nil }
    }

    package func makeNumber(of app: App) async throws -> AppNumber {
        known.withLock { known in
            if let index = known.firstIndex(of: app) { return AppNumber(UInt32(index) + 1) }
            known.append(app)
            return AppNumber(UInt32(known.count))
        }
    }
}

/// Waits for receipts.
package final class ReceiptTray: ReceiptDesk {
    private struct State {
        var last: UInt64 = 0
        var outcomes: [UInt64: ReceiptOutcome] = [:]
        var waiting: [UInt64: CheckedContinuation<ReceiptOutcome, Never>] = [:]
    }

    private let state = Mutex(State())

    package init() {}

    package func receipt() -> Receipt {
        let number = state.withLock { state in
            state.last += 1
            return state.last
        }
        return Receipt(desk: self, number: number)
    }

    package func settle(_ number: UInt64, _ outcome: ReceiptOutcome) {
        let waiting = state.withLock { state in
            state.outcomes[number] = outcome
            return state.waiting.removeValue(forKey: number)
        }
        waiting?.resume(returning: outcome)
    }

    package func outcome(of receipt: Receipt) async -> ReceiptOutcome {
        await withCheckedContinuation { continuation in
            let outcome = state.withLock { state in
                if state.outcomes[receipt.number] == nil { state.waiting[receipt.number] = continuation }
                return state.outcomes[receipt.number]
            }
            if let outcome { continuation.resume(returning: outcome) }
        }
    }
}
