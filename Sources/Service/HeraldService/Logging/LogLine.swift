import HeraldModel
import Logging

/// One line of a log.
struct LogLine {
    let time: WallTime
    let level: Logger.Level
    let label: String
    let message: String
    /// The metadata in their order.
    let facts: [(String, String)]

    func bytes(_ format: HeraldLogHandler.Format) -> [UInt8] {
        switch format {
        case .text: Array((text + "\n").utf8)
        case .json: Array((json + "\n").utf8)
        case .journald: Array(entry.utf8)
        }
    }

    private var text: String {
        "\(time.rfc3339) \(level) \(label): \(words)"
    }

    /// The message, and the facts.
    private var words: String {
        facts.reduce(LogText.escaped(message, limit: LogText.longestMessage)) { line, fact in
            line + " \(LogText.escaped(fact.0, limit: LogText.longestKey))=\(LogText.value(fact.1))"
        }
    }

    private var json: String {
        var members = [
            member("time", time.rfc3339), member("level", "\(level)"), member("logger", label),
            member("message", message, limit: LogText.longestMessage),
        ]
        // Metadata must not replace one of the four members above.
        let taken: Set<String> = ["time", "level", "logger", "message"]
        members += facts.map { key, value in member(taken.contains(key) ? "metadata.\(key)" : key, value) }
        return "{\(members.joined(separator: ","))}"
    }

    private func member(_ key: String, _ value: String, limit: Int = LogText.longestValue) -> String {
        let key = LogText.escaped(key, limit: LogText.longestKey, spelling: .json)
        return "\"\(key)\":\"\(LogText.escaped(value, limit: limit, spelling: .json))\""
    }

    /// An entry of systemd's journal ("Native Journal Protocol"): `FIELD=value` in lines.
    ///
    /// The message repeats the facts, because `journalctl` shows nothing else. No value has a line break.
    private var entry: String {
        var fields = [
            ("MESSAGE", words), ("PRIORITY", "\(priority)"), ("SYSLOG_IDENTIFIER", "herald"), ("HERALD_LOGGER", label),
        ]
        fields += facts.map { key, value in
            (LogLine.field(key), LogText.escaped(value, limit: LogText.longestValue, spelling: .terminal))
        }
        return fields.reduce(into: "") { $0 += "\($1.0)=\($1.1)\n" }
    }

    /// The name of a fact's field: `HERALD_PEER`.
    private static func field(_ key: String) -> String {
        let name = key.uppercased().utf8.prefix(LogText.longestKey - 7).map { byte -> Character in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"):
                Character(Unicode.Scalar(byte))
            default: "_"
            }
        }
        return "HERALD_" + String(name)
    }

    /// The priority of syslog.
    private var priority: Int {
        switch level {
        case .critical: 2
        case .error: 3
        case .warning: 4
        case .notice: 5
        case .info: 6
        case .debug, .trace: 7
        }
    }
}
