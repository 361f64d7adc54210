package import Logging
import Synchronization

/// The log level of the process, which can change while the service runs.
package final class LogThreshold: Sendable {
    private let number: Atomic<Int>

    package init(_ level: Logger.Level) {
        number = Atomic(LogThreshold.number(of: level))
    }

    package var level: Logger.Level {
        get { Logger.Level.allCases[number.load(ordering: .relaxed)] }
        set { number.store(LogThreshold.number(of: newValue), ordering: .relaxed) }
    }

    private static func number(of level: Logger.Level) -> Int {
        Logger.Level.allCases.firstIndex(of: level) ?? 0
    }
}
