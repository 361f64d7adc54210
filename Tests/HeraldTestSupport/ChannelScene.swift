package import HeraldMailbox
package import HeraldModel
import Logging
package import Synchronization

/// A channel service on a store in memory, for tests of listeners and of the courier.
package final class ChannelScene: Sendable {
    package let clock: ManualClock
    package let store: MemoryStore
    package let apps = NumberedApps()
    package let completions = CompletionInbox()
    package let memory: EnvelopeMemory
    package let service: ChannelService

    package init(
        configuration: ChannelServiceConfiguration = ChannelServiceConfiguration(),
        clock: ManualClock = ManualClock(),
        memory: EnvelopeMemory = EnvelopeMemory(limit: 1 << 30)
    ) {
        self.clock = clock
        self.memory = memory
        store = MemoryStore(clock: clock)
        service = ChannelScene.service(configuration, store, apps, clock: clock, memory: memory)
        // As after loading an empty store.
        store.channelReports.begin(service, with: [])
    }

    private static func service(
        _ configuration: ChannelServiceConfiguration,
        _ store: MemoryStore,
        _ apps: NumberedApps,
        clock: ManualClock,
        memory: EnvelopeMemory
    ) -> ChannelService {
        ChannelService(
            configuration: configuration,
            clock: clock,
            store: store,
            apps: apps,
            memory: memory,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
    }

    /// Another service on the same store.
    package func restarted() async throws -> ChannelService {
        let service = ChannelScene.service(ChannelServiceConfiguration(), store, apps, clock: clock, memory: memory)
        try await service.load()
        return service
    }

    /// Calls `body` while the service runs.
    package func run(_ body: () async throws -> Void) async throws {
        try await withThrowingTaskGroup { group in
            group.addTask { await self.service.run() }
            try await body()
            group.cancelAll()
        }
    }

    /// The identifier of the channel of a number.
    package static func id(_ number: UInt64) -> ChannelID { ChannelID(high: 0xCAFE, low: number) }

    /// Stores channels, and has the service load them; once.
    package func load(_ channels: [(UInt64, App, MessageStoragePolicy)]) async throws {
        for (number, app, storage) in channels {
            let app = try await apps.withNumber(of: app, for: nil) { $0 }
            let id = ChannelScene.id(number)
            try await store.createChannel(
                BroadcastChannel(id: id, app: app, storage: storage, created: clock.now())
            )
        }
        try await service.load()
    }

    /// A message to a channel, with the identifiers of a number.
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

    /// Publishes, and waits for a pending completion.
    package func publish(_ post: BroadcastPost) async -> CompletionOutcome {
        let completion = completions.completion()
        switch service.publish(post, completion: completion) {
        case .accepted: return .accepted
        case .refused(let refusalReason, _): return .refused(refusalReason)
        case .pending: return await completions.outcome(of: completion)
        }
    }
}

/// Numbers apps in the order of the calls.
package final class NumberedApps: AppNumbers {
    private let known = Mutex<[App]>([])
    /// Whether new names are refused.
    package let refuses = Mutex(false)

    package init() {}

    package func app(_ number: AppNumber) -> App? {
        known.withLock { $0.indices.contains(Int(number.value) - 1) ? $0[Int(number.value) - 1] : nil }
    }

    package func withNumber<Value: Sendable>(
        of app: App,
        for origin: AppOrigin?,
        _ body: (AppNumber) async throws -> Value
    ) async throws -> Value {
        guard !refuses.withLock({ $0 }) else { throw RegistrationRefusal.tooManyNewNames }
        let number = known.withLock { known in
            if let index = known.firstIndex(of: app) { return AppNumber(UInt32(index) + 1) }
            known.append(app)
            return AppNumber(UInt32(known.count))
        }
        return try await body(number)
    }
}

/// Waits for completions.
package final class CompletionInbox: CompletionHandler {
    private struct State {
        var last: UInt64 = 0
        var outcomes: [UInt64: CompletionOutcome] = [:]
        var waiting: [UInt64: CheckedContinuation<CompletionOutcome, Never>] = [:]
    }

    private let state = Mutex(State())

    package init() {}

    package func completion() -> Completion {
        let number = state.withLock { state in
            state.last += 1
            return state.last
        }
        return Completion(handler: self, number: number)
    }

    package func settle(_ number: UInt64, _ outcome: CompletionOutcome) {
        let waiting = state.withLock { state in
            state.outcomes[number] = outcome
            return state.waiting.removeValue(forKey: number)
        }
        waiting?.resume(returning: outcome)
    }

    package func outcome(of completion: Completion) async -> CompletionOutcome {
        await withCheckedContinuation { continuation in
            let outcome = state.withLock { state in
                if state.outcomes[completion.number] == nil { state.waiting[completion.number] = continuation }
                return state.outcomes[completion.number]
            }
            if let outcome { continuation.resume(returning: outcome) }
        }
    }
}
