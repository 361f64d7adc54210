import CoreMetrics
package import Dispatch
import Foundation
import HeraldMailbox
import HeraldModel
package import Logging
import Synchronization

/// Writes log lines on a thread of its own: a reader that stalls never stops the service.
///
/// At most ``maximumBytes`` wait. Further lines are dropped and counted, and so are those that the output does not take. One
/// line says how many once the reader goes on.
package final class LogWriter: LogSink {
    private struct State {
        var waiting: [[UInt8]] = []
        /// The bytes of the lines that wait.
        var bytes = 0
        var dropped = 0
        /// Number of dropped lines that could not be told; the next line tries again.
        var untold = 0
        /// Whether the thread is writing, or about to.
        var isBusy = false
        /// Callers of ``flush(within:)`` that wait.
        var flushes = 0
    }

    /// 1 MiB: some thousand lines.
    package static let maximumBytes = 1 << 20

    private let output: LogOutput
    private let dropNotice: @Sendable (Int) -> [UInt8]
    private let droppedLines: Counter
    private let state = Mutex(State())
    private let work = DispatchSemaphore(value: 0)
    private let idle = DispatchSemaphore(value: 0)

    /// Several writers may share the output, which stays open.
    ///
    /// `dropNotice` makes the line that says how many lines were dropped.
    package init(_ output: LogOutput, dropNotice: @escaping @Sendable (Int) -> [UInt8]) {
        self.output = output
        self.dropNotice = dropNotice
        droppedLines = Counter(label: MetricName.logLinesDropped)
        let thread = Thread { [self] in run() }
        thread.name = "log"
        thread.start()
    }

    package func write(_ line: [UInt8]) {
        let (isTaken, wakes) = state.withLock { state in
            guard state.bytes + line.count <= Self.maximumBytes else {
                state.dropped += 1
                return (false, false)
            }
            state.waiting.append(line)
            state.bytes += line.count
            defer { state.isBusy = true }
            return (true, !state.isBusy)
        }
        if wakes { work.signal() }
        if !isTaken { droppedLines.increment() }
    }

    /// Waits until all lines are written, or for the time, if the reader has stalled.
    package func flush(within time: DispatchTimeInterval = .seconds(1)) {
        let waits = state.withLock { state in
            if state.isBusy { state.flushes += 1 }
            return state.isBusy
        }
        if waits { _ = idle.wait(timeout: .now() + time) }
    }

    private func run() {
        while true {
            work.wait()
            while let (lines, dropped) = next() {
                let lost = output.write(lines)
                if lost > 0 { droppedLines.increment(by: lost) }
                let isTold = dropped == 0 || output.write([dropNotice(dropped)]) == 0
                state.withLock { state in
                    state.dropped += lost
                    if !isTold { state.untold += dropped }
                }
            }
        }
    }

    /// The lines that wait, and the number of those that were dropped before.
    private func next() -> (lines: [[UInt8]], dropped: Int)? {
        state.withLock { state in
            guard !state.waiting.isEmpty || state.dropped > 0 else {
                state.isBusy = false
                for _ in 0..<state.flushes { idle.signal() }
                state.flushes = 0
                return nil
            }
            defer {
                state.waiting = []
                state.bytes = 0
                state.dropped = 0
                state.untold = 0
            }
            return (state.waiting, state.dropped + state.untold)
        }
    }
}

extension LogWriter {
    /// Makes the log of a process, standard error or systemd's journal, and has all loggers write to it.
    /// - Throws: ``CommandError/Code/configuration`` if there is no journal, and the format is its.
    package static func bootstrap(
        _ format: HeraldLogHandler.Format,
        level: Logger.Level,
        environment: [String: String]
    ) throws -> (log: LogWriter, threshold: LogThreshold) {
        let (clock, threshold) = (ServiceClock(), LogThreshold(level))
        let (output, format) = try LogOutput.ofProcess(format, environment: environment)
        let log = LogWriter(output) { count in
            LogLine(
                time: clock.now(),
                level: .warning,
                label: "herald",
                message: "log lines were dropped: nobody read them, or the journal refused them",
                facts: [("lines", "\(count)")]
            ).bytes(format)
        }
        LoggingSystem.bootstrap { label in
            HeraldLogHandler(label: label, format: format, sink: log, clock: clock, threshold: threshold)
        }
        return (log, threshold)
    }
}
