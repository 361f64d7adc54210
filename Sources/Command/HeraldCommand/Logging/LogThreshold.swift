import Logging
import Synchronization

/// The log level of the process, which can change while the service runs.
final class LogThreshold: Sendable {
    private let number: Atomic<Int>

    init(_ level: Logger.Level) {
        number = Atomic(LogThreshold.number(of: level))
    }

    var level: Logger.Level {
        get { Logger.Level.allCases[number.load(ordering: .relaxed)] }
        set { number.store(LogThreshold.number(of: newValue), ordering: .relaxed) }
    }

    private static func number(of level: Logger.Level) -> Int {
        Logger.Level.allCases.firstIndex(of: level) ?? 0
    }
}
