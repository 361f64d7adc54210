import HeraldModel
import Logging
import Synchronization
import Testing

@testable import HeraldCommand
@testable import HeraldService

@Suite struct LogHandlerTests {
    private final class Lines: LogSink {
        let held = Mutex<[String]>([])

        func write(_ line: [UInt8]) {
            held.withLock { $0.append(String(decoding: line, as: UTF8.self)) }
        }
    }

    private struct StandingClock: WallClock {
        func now() -> WallTime { WallTime(milliseconds: 1_700_000_000_123) }
    }

    private func line(
        _ format: HeraldLogHandler.Format,
        label: String = "herald.test",
        _ level: Logger.Level = .info,
        _ log: (Logger) -> Void
    ) -> String {
        let lines = Lines()
        let logger = Logger(label: label) { label in
            HeraldLogHandler(
                label: label,
                format: format,
                sink: lines,
                clock: StandingClock(),
                threshold: LogThreshold(level)
            )
        }
        log(logger)
        return lines.held.withLock { $0.joined() }
    }

    @Test func `a line of text has time, level, logger, message and sorted metadata`() {
        let line = line(.text) {
            $0.warning("listener closed", metadata: ["port": "2197", "listener": "provider API", "empty": ""])
        }
        #expect(
            line
                == "2023-11-14T22:13:20.123Z warning herald.test: listener closed empty=\"\" listener=\"provider API\" port=2197\n"
        )
    }

    @Test func `the parts of the process are printed at trace only, and their errors always`() {
        func line(_ level: Logger.Level, _ log: (Logger) -> Void) -> String {
            self.line(.text, label: HeraldLogHandler.lifecycle, level, log)
        }
        #expect(line(.debug) { $0.debug("a part starts") } == "")
        #expect(line(.trace) { $0.debug("a part starts") }.contains("a part starts"))
        #expect(line(.error) { $0.error("a part fails") }.contains("a part fails"))
    }

    @Test func `a line of JSON has the same`() {
        let line = line(.json) { $0.error("listener closed", metadata: ["listener": "provider API", "level": "x"]) }
        #expect(
            line
                == #"{"time":"2023-11-14T22:13:20.123Z","level":"error","logger":"herald.test","message":"listener closed","#
                + #""metadata.level":"x","listener":"provider API"}"# + "\n"
        )
    }

    @Test func `an entry of the journal has the message with its facts, the priority, and a field for each fact`() {
        let line = line(.journald) {
            $0.warning("listener closed", metadata: ["peer address": "::1", "reason": "a\nPRIORITY=0", "Ü": "x"])
        }
        #expect(
            line == """
                MESSAGE=listener closed peer address=::1 reason="a\\nPRIORITY=0" Ü=x
                PRIORITY=4
                SYSLOG_IDENTIFIER=herald
                HERALD_LOGGER=herald.test
                HERALD_PEER_ADDRESS=::1
                HERALD_REASON=a\\nPRIORITY=0
                HERALD___=x

                """
        )
    }

    @Test(arguments: [
        (Logger.Level.critical, 2), (.error, 3), (.warning, 4), (.notice, 5), (.info, 6),
    ])
    func `a level is a priority of syslog`(level: Logger.Level, priority: Int) {
        #expect(line(.journald) { $0.log(level: level, "m") }.contains("\nPRIORITY=\(priority)\n"))
    }

    @Test func `what is below the level is not written`() {
        #expect(line(.text) { $0.debug("quiet") }.isEmpty)
    }

    @Test(arguments: [
        ("a\nb", "a\\nb"), ("\u{1b}[31m", "\\u{1b}[31m"), ("a\"b\\", "a\\\"b\\\\"), ("\u{202e}x", "\\u{202e}x"),
        ("\u{2028}", "\\u{2028}"),
        ("\u{0}", "\\u{0}"), ("\u{85}", "\\u{85}"), ("grüß", "grüß"), ("k=v", "\"k=v\""),
    ])
    func `foreign text is one word without control characters`(value: String, expected: String) {
        #expect(LogText.value(value) == expected)
    }

    @Test func `foreign text in JSON is escaped as JSON has it`() {
        let line = line(.json) { $0.info("m", metadata: ["a": "\u{1b}\n\"\u{E0001}"]) }
        #expect(line.contains(#""a":"\u001b\n\"\udb40\udc01""#))
    }

    @Test(arguments: [
        "می\u{200C}خواهم", "क्\u{200D}ष", "👩\u{200D}🚀", "❤\u{FE0F}", "漢\u{E0100}", "ភាសា\u{200B}ខ្មែរ", "co\u{AD}op",
        "\u{601}١٢",
        "ᠮᠣᠩ\u{180E}ᠠ", "🏴\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
        "🏴\u{E0075}\u{E0073}\u{E0063}\u{E0061}\u{E007F}!", "🇫🇷", "1\u{FE0F}\u{20E3}", "e\u{301}", "\u{F8FF}", "\\\"",
    ])
    func `texts of all languages are shown on a terminal`(text: String) {
        #expect(LogText.line(text).unicodeScalars.elementsEqual(text.unicodeScalars))
    }

    @Test(arguments: [
        ("a\u{202E}b\u{2066}c", "a\\u{202e}b\\u{2066}c"), ("\u{200E}\u{200F}\u{61C}", "\\u{200e}\\u{200f}\\u{61c}"),
        ("\u{1B}[2J\r\n\t\u{9B}", "\\u{1b}[2J\\r\\n\\t\\u{9b}"), ("\u{2028}\u{2029}", "\\u{2028}\\u{2029}"),
        ("\u{E0068}\u{E0069}", "\\u{e0068}\\u{e0069}"), ("🏴\u{E0067}\u{E0062}", "🏴\\u{e0067}\\u{e0062}"),
        (
            "🏴\(String(repeating: "\u{E0061}", count: 8))\u{E007F}",
            "🏴\(String(repeating: "\\u{e0061}", count: 8))\\u{e007f}"
        ),
        ("\u{FFFF}\u{FEFF}\u{206A}", "\\u{ffff}\\u{feff}\\u{206a}"),
    ])
    func `what moves the cursor, reorders a line or hides a text is escaped on a terminal, once`(
        text: String,
        expected: String
    ) {
        #expect(LogText.line(text) == expected && LogText.line(expected) == expected)
    }

    @Test func `a long value is cut between characters`() {
        let cut = LogText.escaped(String(repeating: "ü", count: 1000), limit: 255)
        #expect(cut == String(repeating: "ü", count: 127) + "…")
    }

    @Test func `an error is a fact of the line`() {
        let line = line(.text) { $0.info("failed", error: CommandError(.file, "no such file")) }
        #expect(line.hasSuffix("failed error=\"no such file\"\n"))
    }
}
