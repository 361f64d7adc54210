import HeraldJSON
package import HeraldMailbox
package import HeraldModel
import Synchronization

/// A group of refused requests, as the API shows it.
package struct RefusalEntry: Codable, SnakeCased, Hashable, Sendable {
    package struct Sample: Codable, Hashable, Sendable {
        package let time: String
        package let id: String
        package let explanation: String
    }

    /// The credential; absent if no known one came with the requests.
    package let provider: String?
    /// Empty if the requests named none.
    package let topic: String
    package let environment: PushEnvironment
    package let reason: String
    package let status: Int
    package let count: Int
    package let first: String
    package let last: String
    /// Share of the provider's requests of the last hour; absent if it had none.
    package let share: Double?
    /// Counts of the last hour, oldest minute first.
    package let perMinute: [Int]
    /// Newest first.
    package let samples: [Sample]
}

/// Keeps the groups of refused requests; the store's thread feeds it.
package final class RefusalBook: Sendable {
    /// Share of a provider's requests above which a group is a problem.
    private static let worryingShare = 0.05
    /// The fewest refusals of an hour that are a problem.
    private static let worryingCount = 20

    private let groups = Mutex(RefusalGroups())
    private let provider: @Sendable (SenderNumber) -> String?
    private let app: @Sendable (AppNumber) -> App?

    package init(
        provider: @escaping @Sendable (SenderNumber) -> String?,
        app: @escaping @Sendable (AppNumber) -> App?
    ) {
        self.provider = provider
        self.app = app
    }

    /// Takes over the requests of one commit of the journal.
    package func add(_ requests: [SenderNumber: Int], refused: [JournalEvent], at time: WallTime) {
        groups.withLock { groups in
            for (sender, count) in requests { groups.count(count, of: sender, at: time) }
            for event in refused { groups.add(event) }
        }
    }

    /// The groups, the last seen first.
    package func entries(at time: WallTime) -> [RefusalEntry] {
        let groups = groups.withLock { $0 }
        return groups.all.map { group in
            RefusalEntry(
                provider: provider(group.key.sender),
                topic: topic(of: group.key),
                environment: group.key.environment,
                reason: group.key.reason.rawValue,
                status: group.key.reason.httpStatus,
                count: group.count,
                first: group.first.rfc3339,
                last: group.last.rfc3339,
                share: groups.share(of: group, at: time),
                perMinute: group.perMinute.last(at: time),
                samples: group.samples.reversed().map { sample in
                    RefusalEntry.Sample(
                        time: sample.time.rfc3339,
                        id: sample.id.description,
                        explanation: sample.explanation
                    )
                }
            )
        }
    }

    /// The groups that are a problem.
    package func findings(at time: WallTime) -> [ProblemFinding] {
        let groups = groups.withLock { $0 }
        return groups.all.compactMap { group in
            let count = group.perMinute.last(at: time).reduce(0, +)
            guard count >= RefusalBook.worryingCount, let share = groups.share(of: group, at: time),
                share > RefusalBook.worryingShare
            else { return nil }
            let (sender, topic) = (provider(group.key.sender) ?? "unknown credentials", topic(of: group.key))
            let environment = group.key.environment.rawValue
            return ProblemFinding(
                .refusals,
                of: "\(sender) \(topic) \(environment) \(group.key.reason.rawValue)",
                "more than 5 % of the requests of \(sender) are refused: \(group.key.reason.rawValue)"
                    + (topic.isEmpty ? "" : " for \(topic)") + " in \(environment)"
            )
        }
    }

    private func topic(of key: RefusalGroups.Key) -> String {
        key.topic ?? app(key.app)?.topic.name ?? ""
    }
}
