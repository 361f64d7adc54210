package import Logging
import Synchronization

/// A log that a test reads: each message with its sorted metadata.
package final class LogNotes: Sendable {
    private let lines = Mutex<[(text: String, reason: String)]>([])
    private let logLevel: Logger.Level
    package var all: [String] { lines.withLock { $0.map(\.text) } }
    /// The metadata `reason` of each line; "none" if it has none.
    package var reasons: [String] { lines.withLock { $0.map(\.reason) } }
    package var logger: Logger { Logger(label: "test") { _ in Handler(notes: self, logLevel: self.logLevel) } }

    package init(logLevel: Logger.Level = .info) {
        self.logLevel = logLevel
    }

    private struct Handler: LogHandler {
        let notes: LogNotes
        var metadata: Logger.Metadata = [:]
        var logLevel: Logger.Level

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let metadata = event.metadata ?? [:]
            let facts = metadata.map { " \($0)=\($1)" }.sorted().joined()
            let reason = metadata["reason"].map { "\($0)" } ?? "none"
            notes.lines.withLock { $0.append(("\(event.message)\(facts)", reason)) }
        }
    }
}
