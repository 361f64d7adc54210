package import HeraldMailbox
package import HeraldModel
import Synchronization

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

    private struct State {
        var heard = Heard()
        var waiters: [(isMet: @Sendable (Heard) -> Bool, continuation: CheckedContinuation<Heard, Never>)] = []
    }

    private let state = Mutex(State())

    package init() {}

    package var heard: Heard { state.withLock { $0.heard } }

    package func loaded(_ channels: [StoredChannel]) {
        note { $0 = Heard(channels: channels.map(\.channel.id)) }
    }

    package func created(_ channel: StoredChannel) {
        note { $0.channels.append(channel.channel.id) }
    }

    package func deleted(_ id: ChannelID) {
        note { heard in heard.channels.removeAll { $0 == id } }
    }

    package func received(_ broadcast: Broadcast, isDurable: Bool) {
        note { $0.received.append(broadcast) }
    }

    package func settled(_ broadcast: Broadcast, isStored: Bool) {
        if !isStored { note { $0.failed.append(broadcast) } }
    }

    /// Waits until the reports meet a condition.
    @discardableResult
    package func wait(until isMet: @escaping @Sendable (Heard) -> Bool) async -> Heard {
        await withCheckedContinuation { continuation in
            let heard: Heard? = state.withLock { state in
                if isMet(state.heard) { return state.heard }
                state.waiters.append((isMet, continuation))
                return nil
            }
            if let heard { continuation.resume(returning: heard) }
        }
    }

    private func note(_ change: (inout Heard) -> Void) {
        let (met, heard) = state.withLock { state in
            change(&state.heard)
            let heard = state.heard
            let met = state.waiters.filter { $0.isMet(heard) }.map(\.continuation)
            state.waiters.removeAll { $0.isMet(heard) }
            return (met, heard)
        }
        for continuation in met { continuation.resume(returning: heard) }
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
