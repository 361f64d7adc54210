package import HeraldModel
package import Logging

/// One line per event, for a terminal or for a program that collects logs.
///
///     2026-11-21T02:34:56.789Z warning herald.courier: handshake failed error="no certificate" peer=192.0.2.1:50122
///     {"time":"2026-11-21T02:34:56.789Z","level":"warning","logger":"herald.courier","message":"handshake failed",…}
///
/// The message is constant. Metadata may hold text of a peer, so it is escaped and cut.
package struct HeraldLogHandler: LogHandler {
    /// The form of log lines.
    package enum Format: String, CaseIterable, Sendable {
        /// Lines for people on standard error; if that is systemd's journal, entries with fields instead.
        case text
        /// A line of JSON on standard error.
        case json
        /// Entries with fields, sent to systemd's journal.
        case journald
    }

    /// The label of the library that starts and stops the parts of a process.
    ///
    /// Its debug messages print these parts as Swift does: they appear only at `trace`.
    package static let lifecycle = "herald.lifecycle"

    package let label: String
    package let format: Format
    package let sink: any LogSink
    /// The system's clock, even if the service's clock was moved.
    package let clock: any WallClock
    package let threshold: LogThreshold
    /// The logger's own level; nil for the common threshold.
    private var ownLevel: Logger.Level?
    package var metadata: Logger.Metadata = [:]
    package var metadataProvider: Logger.MetadataProvider?

    package init(label: String, format: Format, sink: any LogSink, clock: any WallClock, threshold: LogThreshold) {
        self.label = label
        self.format = format
        self.sink = sink
        self.clock = clock
        self.threshold = threshold
    }

    package var logLevel: Logger.Level {
        get {
            ownLevel ?? (label == Self.lifecycle && threshold.level == .debug ? .info : threshold.level)
        }
        set { ownLevel = newValue }
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) {
        var all = metadata
        if let provided = metadataProvider?.get() { all.merge(provided) { _, new in new } }
        if let more = event.metadata { all.merge(more) { _, new in new } }
        if let error = event.error { all["error"] = "\(error)" }
        let facts = all.map { ($0.key, "\($0.value)") }.sorted { $0.0 < $1.0 }
        let line = LogLine(
            time: clock.now(),
            level: event.level,
            label: label,
            message: "\(event.message)",
            facts: facts
        )
        sink.write(line.bytes(format))
    }
}
