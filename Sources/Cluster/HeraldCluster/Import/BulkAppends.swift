/// Appends many messages of which each replaces what its subject has, so that one may be written twice.
package struct BulkAppends: Sendable {
    /// Messages that are on their way at once: the servers sync them together.
    package static let width = 512
    /// The time in which each must be stored, in seconds: longer than the election of a leader.
    package static let patience = Duration.seconds(30)

    package struct Message: Sendable {
        let stream: LogStream
        let message: LogMessage

        package init(_ message: LogMessage, to stream: LogStream) {
            self.message = message
            self.stream = stream
        }
    }

    private let log: any ReplicatedLog
    private let patience: Duration

    package init(_ log: any ReplicatedLog, patience: Duration = Self.patience) {
        self.log = log
        self.patience = patience
    }

    /// Appends messages; those of one call in no order.
    /// - Throws: ``RecordChangeFailure`` if one is not stored in time; others may be.
    package func append(_ messages: [Message]) async throws {
        for slice in messages.chunks(ofCount: Self.width) {
            try await withThrowingTaskGroup { group in
                for message in slice { group.addTask { try await append(message) } }
                try await group.waitForAll()
            }
        }
    }

    private func append(_ message: Message) async throws {
        let end = ContinuousClock.now + patience
        while true {
            let outcome = await log.append(message.message, to: message.stream)
            if case .stored = outcome { return }
            guard .now < end else { throw RecordChangeFailure(outcome) }
            try await Task.sleep(for: ClusterLimits.putRetry)
        }
    }
}
