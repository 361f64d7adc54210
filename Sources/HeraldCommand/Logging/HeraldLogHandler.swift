import HeraldModel
import Logging

/// One line per event, for a terminal or for a program that collects logs.
///
///     2026-11-21T02:34:56.789Z warning herald.courier: handshake failed error="no certificate" peer=192.0.2.1:50122
///     {"time":"2026-11-21T02:34:56.789Z","level":"warning","logger":"herald.courier","message":"handshake failed",…}
///
/// The message is constant and Herald's own; metadata may hold what a peer said, so it is escaped and cut.
struct HeraldLogHandler: LogHandler {
    /// How lines look.
    enum Format: String, CaseIterable, Sendable {
        case text
        case json
    }

    let label: String
    let format: Format
    let sink: any LogSink
    /// The true time: a log is read beside others, also when the service's clock was moved.
    let clock: any WallClock
    let threshold: LogThreshold
    /// What a logger has for itself; the common threshold holds otherwise.
    private var ownLevel: Logger.Level?
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?

    init(label: String, format: Format, sink: any LogSink, clock: any WallClock, threshold: LogThreshold) {
        self.label = label
        self.format = format
        self.sink = sink
        self.clock = clock
        self.threshold = threshold
    }

    var logLevel: Logger.Level {
        get { ownLevel ?? threshold.level }
        set { ownLevel = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var all = metadata
        if let provided = metadataProvider?.get() { all.merge(provided) { _, new in new } }
        if let more = event.metadata { all.merge(more) { _, new in new } }
        if let error = event.error { all["error"] = "\(error)" }
        let facts = all.map { ($0.key, "\($0.value)") }.sorted { $0.0 < $1.0 }
        let line =
            switch format {
            case .text: textLine(event, facts)
            case .json: jsonLine(event, facts)
            }
        sink.write(Array((line + "\n").utf8))
    }

    private func textLine(_ event: LogEvent, _ facts: [(String, String)]) -> String {
        let message = LogText.escaped("\(event.message)", limit: LogText.longestMessage)
        let head = "\(clock.now().rfc3339) \(event.level) \(label): \(message)"
        return facts.reduce(head) { line, fact in
            line + " \(LogText.escaped(fact.0, limit: LogText.longestKey))=\(LogText.value(fact.1))"
        }
    }

    private func jsonLine(_ event: LogEvent, _ facts: [(String, String)]) -> String {
        var members = [
            member("time", clock.now().rfc3339), member("level", "\(event.level)"), member("logger", label),
            member("message", "\(event.message)", limit: LogText.longestMessage),
        ]
        // Nothing that a fact is called may hide one of the four above.
        let taken: Set<String> = ["time", "level", "logger", "message"]
        members += facts.map { key, value in member(taken.contains(key) ? "metadata.\(key)" : key, value) }
        return "{\(members.joined(separator: ","))}"
    }

    private func member(_ key: String, _ value: String, limit: Int = LogText.longestValue) -> String {
        let key = LogText.escaped(key, limit: LogText.longestKey, spelling: .json)
        return "\"\(key)\":\"\(LogText.escaped(value, limit: limit, spelling: .json))\""
    }
}
