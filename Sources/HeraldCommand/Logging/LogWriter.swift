import Dispatch
import Foundation
import HeraldModel
import Logging
import Synchronization

/// Writes log lines to a descriptor on a thread of its own: a reader that stalls never stops the service.
///
/// At most ``maximumBytes`` wait. Further lines are dropped, and one line says how many once the reader goes on.
final class LogWriter: LogSink {
    private struct State {
        var waiting: [UInt8] = []
        var dropped = 0
        /// Whether the thread is writing, or about to.
        var isBusy = false
        /// Callers of ``flush(within:)`` that wait.
        var flushes = 0
    }

    /// 1 MiB: some thousand lines.
    static let maximumBytes = 1 << 20

    private let descriptor: CInt
    private let dropNotice: @Sendable (Int) -> [UInt8]
    private let state = Mutex(State())
    private let work = DispatchSemaphore(value: 0)
    private let idle = DispatchSemaphore(value: 0)

    /// - Parameters:
    ///   - descriptor: Stays open; several writers may share it.
    ///   - dropNotice: Makes the line that says how many lines were dropped.
    init(_ descriptor: CInt, dropNotice: @escaping @Sendable (Int) -> [UInt8]) {
        self.descriptor = descriptor
        self.dropNotice = dropNotice
        let thread = Thread { [self] in run() }
        thread.name = "log"
        thread.start()
    }

    func write(_ line: [UInt8]) {
        let wakes = state.withLock { state in
            guard state.waiting.count + line.count <= Self.maximumBytes else {
                state.dropped += 1
                return false
            }
            state.waiting += line
            defer { state.isBusy = true }
            return !state.isBusy
        }
        if wakes { work.signal() }
    }

    /// Waits until all lines are written, or for the time, if the reader has stalled.
    func flush(within time: DispatchTimeInterval = .seconds(1)) {
        let waits = state.withLock { state in
            if state.isBusy { state.flushes += 1 }
            return state.isBusy
        }
        if waits { _ = idle.wait(timeout: .now() + time) }
    }

    private func run() {
        while true {
            work.wait()
            while let bytes = next() { writeAll(bytes) }
        }
    }

    private func next() -> [UInt8]? {
        state.withLock { state in
            guard !state.waiting.isEmpty || state.dropped > 0 else {
                state.isBusy = false
                for _ in 0..<state.flushes { idle.signal() }
                state.flushes = 0
                return nil
            }
            let bytes = state.dropped == 0 ? state.waiting : state.waiting + dropNotice(state.dropped)
            state.waiting = []
            state.dropped = 0
            return bytes
        }
    }

    private func writeAll(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN {
                var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&wanted, 1, -1)
                continue
            }
            // A closed log must not stop the service.
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}

extension LogWriter {
    /// The log of a process on standard error.
    static func standardError(_ format: HeraldLogHandler.Format, clock: any WallClock) -> LogWriter {
        LogWriter(STDERR_FILENO) { count in
            LogLine(
                time: clock.now(),
                level: .warning,
                label: "herald",
                message: "log lines were dropped, because nobody read them",
                facts: [("lines", "\(count)")]
            ).bytes(format)
        }
    }
}
