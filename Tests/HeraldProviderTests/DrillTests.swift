import HeraldGateway
import HeraldModel
import NIOCore
import Synchronization
import Testing

@testable import HeraldProvider

/// Bad days of the service, as its drills make them: nothing lost, nothing doubled.
@Suite(.timeLimit(.minutes(10)), .serialized)
struct `a client on a bad day` {
    private static let count = 500

    /// Outcomes by place, as they come.
    private final class Results: Sendable {
        private let list = Mutex<[(place: Int, result: Result<PushAnswer, any Error>)]>([])

        var all: [(place: Int, result: Result<PushAnswer, any Error>)] { list.withLock { $0 } }

        func add(_ place: Int, _ result: Result<PushAnswer, any Error>) { list.withLock { $0.append((place, result)) } }
    }

    /// Outcome of every notification.
    private struct Outcome {
        var accepted: [NotificationID] = []
        var refused: [PushRefusal] = []
        var failed: [ProviderError] = []
    }

    /// Sends many at once, each to a device of its own: half of them in one call, each other one in a task.
    private func send(_ client: ProviderClient, _ service: TestService, count: Int = count) async throws -> Outcome {
        let results = Results()
        await withDiscardingTaskGroup { group in
            let batch = (0..<count / 2).map { service.request($0) }
            group.addTask {
                await client.send(batch) { results.add($0, $1) }
                let places = Set(results.all.map(\.place))
                #expect(places.isSuperset(of: batch.indices))
            }
            for number in batch.count..<count {
                let request = service.request(number)
                group.addTask {
                    do {
                        let answer = try await client.send(request)
                        results.add(number, .success(answer))
                    } catch {
                        results.add(number, .failure(error))
                    }
                }
            }
        }
        var outcome = Outcome()
        for (_, result) in results.all {
            switch result {
            case .success(.accepted(let receipt)): outcome.accepted += [try #require(NotificationID(receipt.id))]
            case .success(.refused(let refusal)): outcome.refused.append(refusal)
            case .failure(let error): outcome.failed.append(try #require(error as? ProviderError))
            }
        }
        #expect(outcome.accepted.count + outcome.refused.count + outcome.failed.count == count)
        return outcome
    }

    /// Every one was accepted, and the service has it once.
    private func expectAllOnce(_ outcome: Outcome, _ service: TestService, count: Int = count) {
        #expect(outcome.accepted.count == count)
        #expect(outcome.failed.first == nil)
        #expect(outcome.refused.first == nil)
        let ledger = service.ledger.accepted
        #expect(ledger.count == count)
        #expect(ledger.values.allSatisfy { $0 == 1 })
        #expect(outcome.accepted.allSatisfy { ledger[$0] == 1 })
    }

    @Test func `sends everything without a drill`() async throws {
        try await TestService.run { service in
            try await withProviderClient(service.configuration) { client in
                expectAllOnce(try await send(client, service), service)
            }
        }
    }

    @Test(
        arguments: [
            (.goAway(nil), 2000), (.goAway(.shutdown), 500), (.goAway(.idleTimeout), 500),
            (.goAway(nil, isTwoStep: true), 500), (.refuseStream, 500),
        ] as [(Drill.Kind, Int)]
    )
    func `takes GOAWAY and refused streams in mid-batch as routine`(kind: Drill.Kind, count: Int) async throws {
        try await TestService.run { service in
            service.start(kind, share: 0.01)
            try await withProviderClient(service.configuration) { client in
                expectAllOnce(try await send(client, service, count: count), service, count: count)
            }
        }
    }

    @Test func `obeys a stream limit of one, and the usual one after it`() async throws {
        try await TestService.run { service in
            try await withProviderClient(service.configuration) { client in
                _ = try await send(client, service, count: 1)
                service.start(.streams(1, period: nil))
                let outcome = try await send(client, service, count: 300)
                #expect(outcome.accepted.count == 300)
                for drill in service.drills.reports { _ = service.drills.stop(drill.id) }
                let after = try await send(client, service, count: 300)
                #expect(after.accepted.count == 300)
                let ledger = service.ledger.accepted
                #expect(ledger.count == 601)
                #expect(ledger.values.allSatisfy { $0 == 1 })
            }
        }
    }

    @Test(arguments: [RefusalReason.tooManyRequests, .serviceUnavailable, .internalServerError])
    func `retries temporary refusals`(reason: RefusalReason) async throws {
        try await TestService.run { service in
            service.start(.refuse(reason, retryAfter: .seconds(1)), share: 0.05)
            var configuration = service.configuration
            configuration.retry.firstPause = .milliseconds(10)
            configuration.retry.reserve = 1000
            try await withProviderClient(configuration) { client in
                expectAllOnce(try await send(client, service), service)
            }
        }
    }

    @Test func `does not multiply its load when everything is refused`() async throws {
        try await TestService.run { service in
            service.start(.refuse(.serviceUnavailable, retryAfter: .seconds(1)))
            var configuration = service.configuration
            configuration.retry.reserve = 50
            try await withProviderClient(configuration) { client in
                let outcome = try await send(client, service, count: 500)
                #expect(outcome.refused.count == 500)
                #expect(outcome.failed.first == nil)
                #expect(outcome.refused.allSatisfy { $0.retryAfter == .seconds(1) })
            }
            #expect(service.drills.reports.first?.hits ?? 0 <= 550 + 50)
        }
    }

    @Test func `moves away from a service that stops`() async throws {
        try await TestService.run { service in
            service.start(.shutdown, share: 0.005)
            var configuration = service.configuration
            configuration.retry.firstPause = .milliseconds(10)
            configuration.retry.reserve = 5000
            try await withProviderClient(configuration) { client in
                let outcome = try await send(client, service)
                expectAllOnce(outcome, service)
            }
        }
    }

    private static let ambiguous: [Drill.Kind] = [
        .drop, .silence(isAccepted: true), .silence(isAccepted: false), .reset(isAccepted: true),
        .reset(isAccepted: false),
    ]

    @Test(arguments: ambiguous)
    func `reports as ambiguous exactly what is ambiguous`(kind: Drill.Kind) async throws {
        try await TestService.run { service in
            service.start(kind, share: 0.02)
            var configuration = service.configuration
            if case .silence = kind { configuration.timeout = .seconds(20) }
            try await withProviderClient(configuration) { client in
                let outcome = try await send(client, service)
                #expect(!outcome.failed.isEmpty)
                #expect(outcome.accepted.count + outcome.failed.count == Self.count)
                #expect(outcome.failed.allSatisfy { $0.mayHaveArrived && $0.id != nil })
                let ledger = service.ledger.accepted
                #expect(outcome.accepted.allSatisfy { ledger[$0] == 1 })
                #expect(ledger.values.allSatisfy { $0 == 1 })
            }
        }
    }

    @Test(arguments: ambiguous)
    func `with a resolver, loses nothing and duplicates nothing`(kind: Drill.Kind) async throws {
        try await TestService.run { service in
            service.start(kind, share: 0.02)
            var configuration = service.configuration
            if case .silence = kind { configuration.timeout = .seconds(20) }
            configuration.retry.firstPause = .milliseconds(10)
            configuration.retry.reserve = 5000
            // Every drop takes with it what is on the connection.
            configuration.retry.attempts = 100
            configuration.resolver = { service.ledger.accepted[$0] == nil ? .neverArrived : .accepted }
            try await withProviderClient(configuration) { client in
                expectAllOnce(try await send(client, service), service)
            }
        }
    }
}
