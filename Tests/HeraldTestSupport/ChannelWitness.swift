package import HeraldMailbox
package import HeraldModel

/// Collects a store's reports about channels, and lets a test wait for them.
package final class ChannelWitness: ChannelSink {
    /// All reports since the last ``loaded(_:)``.
    package struct Heard: Sendable {
        package var channels: [ChannelID] = []
        /// In the order of the reports.
        package var received: [Broadcast] = []
        package var failed: [Broadcast] = []

        /// The numbers of the identifiers of what was received.
        package var ids: [UInt64] { received.map(\.id.low) }
    }

    private let reports = Reports(Heard())

    package init() {}

    package var heard: Heard { reports.heard }

    package func loaded(_ channels: [StoredChannel]) {
        reports.note { $0 = Heard(channels: channels.map(\.channel.id)) }
    }

    package func created(_ channel: StoredChannel) {
        reports.note { $0.channels.append(channel.channel.id) }
    }

    package func deleted(_ id: ChannelID) {
        reports.note { heard in heard.channels.removeAll { $0 == id } }
    }

    package func received(_ broadcast: Broadcast, isDurable: Bool) {
        reports.note { $0.received.append(broadcast) }
    }

    package func settled(_ broadcast: Broadcast, isStored: Bool) {
        if !isStored { reports.note { $0.failed.append(broadcast) } }
    }

    /// Waits until the reports meet a condition.
    @discardableResult
    package func wait(until isMet: @escaping @Sendable (Heard) -> Bool) async -> Heard {
        await reports.wait(until: isMet)
    }
}

extension ChannelStore {
    /// Publishes, and waits for the outcome.
    package func publish(_ broadcast: Broadcast, at moment: WallTime) async throws {
        try await withCheckedThrowingContinuation { continuation in
            publish(broadcast, at: moment) { continuation.resume(with: $0) }
        }
    }
}
