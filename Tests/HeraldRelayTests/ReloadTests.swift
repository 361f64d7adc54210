import HeraldModel
import HeraldProvider
import HeraldTestSupport
import Synchronization
import Testing

@testable import HeraldRelay

/// Apps that a reload replaces.
@Suite(.timeLimit(.minutes(10))) struct ReloadTests {
    /// Signals of a sender, and to it.
    private final class Watch: Sendable {
        let beginning = AsyncStream.makeStream(of: Void.self)
        let answer = AsyncStream.makeStream(of: Void.self)
        let end = AsyncStream.makeStream(of: Void.self)
        private let flag = Mutex(false)

        var hasEnded: Bool { flag.withLock { $0 } }

        func noteEnd() {
            flag.withLock { $0 = true }
            end.continuation.finish()
        }
    }

    /// Accepts its notifications when the test lets it.
    private final class Holder: RelaySender {
        private let watch: Watch

        init(_ watch: Watch) {
            self.watch = watch
        }

        deinit {
            watch.noteEnd()
        }

        func send(_ requests: [PushRequest], report: @escaping @Sendable (Int, SendResult) -> Void) async {
            watch.beginning.continuation.finish()
            for await _ in watch.answer.stream {}
            for place in requests.indices {
                let answer = try? PushAnswer(status: 200, field: { $0 == "apns-id" ? "x" : nil }, body: [])
                report(place, answer.map { .answered($0) } ?? .uncertain(RowError(.unreachable)))
            }
        }

        func shutdown() async {}
    }

    private func relay(_ store: RelayStore, _ watches: [RelayApp: Watch]) -> Relay {
        Relay.one(
            store,
            RouteList { app in
                Route(app, sender: Holder(watches[app] ?? Watch()), journal: nil, backOff: RetryBackOff())
            }
        )
    }

    private static func app(_ certificate: UInt8) -> RelayApp {
        RelayApp.herald(["com.example.chat"], pem: [certificate])
    }

    @Test func `a replaced sender goes at once if it sends nothing, and one that stays does not`() async throws {
        try await Engine.all[0].withBare { store, _ in
            let (former, kept) = (Watch(), Watch())
            let relay = relay(store, [Self.app(1): former, Self.app(2): kept])
            try relay.replace([Self.app(1), Self.app(2)])
            #expect(!former.hasEnded && !kept.hasEnded)
            try relay.replace([Self.app(3), Self.app(2)])
            #expect(former.hasEnded && !kept.hasEnded)
        }
    }

    @Test func `a replaced sender goes after the last outcome of its work in flight`() async throws {
        try await Engine.all[0].with { store in
            try await store.queue()
            let former = Watch()
            let relay = relay(store, [Self.app(1): former])
            try relay.replace([Self.app(1)])
            let rows = try await store.claim()
            let changes = Mutex<[RowOutcome.Change?]>([])
            async let work: Void = relay.rows.process(rows) { _, outcome in
                changes.withLock { $0.append(outcome?.change) }
            }
            for await _ in former.beginning.stream {}
            try relay.replace([Self.app(2)])
            #expect(!former.hasEnded)
            former.answer.continuation.finish()
            await work
            #expect(changes.withLock { $0 } == [.final(.sent, reason: nil)])
            for await _ in former.end.stream {}
            #expect(former.hasEnded)
        }
    }
}
