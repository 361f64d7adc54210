import CoreMetrics
package import Logging
import Synchronization

/// Records and messages from NATS that no node of this cluster wrote for their place: they did not open under the cluster key.
///
/// They do nothing but to be named here, in the log of the service and in the metrics.
package final class SetAside: Sendable {
    /// The time for which the last one counts as a problem.
    package static let memory = Duration.seconds(3600)
    /// The subjects that are named, at most.
    private static let names = 8

    private struct State {
        var count = 0
        var subjects: [String] = []
        var last: ContinuousClock.Instant?
    }

    private let logger: Logger?
    private let now: @Sendable () -> ContinuousClock.Instant
    private let state = Mutex(State())
    private let records = Counter(label: "herald_cluster_set_aside_total", dimensions: [("kind", "record")])
    private let messages = Counter(label: "herald_cluster_set_aside_total", dimensions: [("kind", "message")])

    /// The logger gets the first of each subject that is named; nil for a command.
    package init(
        _ logger: Logger? = nil,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }
    ) {
        self.logger = logger
        self.now = now
    }

    /// A record of the log did not open.
    package func record(_ subject: LogSubject) {
        records.increment()
        note(subject.text, "set aside a record of the cluster's log that no node wrote")
    }

    /// A message between nodes did not open.
    package func message(_ subject: String) {
        messages.increment()
        note(subject, "dropped a message between nodes that no node sent")
    }

    private func note(_ subject: String, _ event: Logger.Message) {
        let now = now()
        let isNew = state.withLock { state in
            if Self.isOver(state.last, at: now) { state = State() }
            state.count += 1
            state.last = now
            guard state.subjects.count < Self.names, !state.subjects.contains(subject) else { return false }
            state.subjects.append(subject)
            return true
        }
        if isNew { logger?.error(event, metadata: ["subject": "\(subject)"]) }
    }

    private static func isOver(_ last: ContinuousClock.Instant?, at now: ContinuousClock.Instant) -> Bool {
        last.map { now - $0 >= memory } ?? true
    }

    /// A warning of what was set aside, until an hour after the last; nil if nothing was.
    package var warning: String? {
        let state = state.withLock { $0 }
        guard !Self.isOver(state.last, at: now()) else { return nil }
        let more = state.count > state.subjects.count ? ", …" : ""
        return """
            somebody who is not a node of this cluster writes to NATS: \(state.count) records or messages were set aside, the last \
            within an hour (\(state.subjects.joined(separator: ", "))\(more)): change the credentials of the NATS account \
            (docs/cluster.md, who holds the account)
            """
    }
}
