import Dispatch
import Foundation
import HeraldModel
package import Logging
import Synchronization

/// The service manager that started this process.
///
/// It learns the state of the process by systemd's protocol `sd_notify`.
///
/// Without the variable `NOTIFY_SOCKET` there is none, and nothing is sent.
package final class ServiceManager: Sendable {
    /// The longest wait for the manager's socket, in seconds.
    private static let longestWait = 1
    /// How often a start asks for more time, and for how much, in seconds.
    private static let extensionPause = 2
    private static let extensionTime = 30
    /// The most extensions of one start: an hour in all.
    ///
    /// A start that hangs is not prolonged for ever.
    private static let mostExtensions = 1800

    /// The time within which the manager wants a sign of life; nil if it wants none.
    let watchdog: Duration?

    private struct Target {
        let socket: DatagramSocket
        let address: String
    }

    private let target: Target?
    private let started = DispatchSemaphore(value: 0)
    private let lastStatus = Mutex("")

    /// `process` is this one, which the watchdog must mean.
    package init(environment: [String: String], process: Int32 = getpid()) {
        watchdog = Self.watchdog(environment, process)
        guard let address = environment["NOTIFY_SOCKET"], address.hasPrefix("/") || address.hasPrefix("@") else {
            target = nil
            return
        }
        target = DatagramSocket(longestWait: Self.longestWait).map { Target(socket: $0, address: address) }
    }

    deinit {
        target?.socket.close()
    }

    /// Whether there is a manager.
    var isThere: Bool { target != nil }

    /// The time within which the manager wants a sign of life (`WATCHDOG_USEC`), if it means this process.
    static func watchdog(_ environment: [String: String], _ process: Int32) -> Duration? {
        guard let time = environment["WATCHDOG_USEC"].flatMap({ Int64($0) }), time > 0,
            environment["WATCHDOG_PID"].map({ Int32($0) == process }) ?? true
        else { return nil }
        return .microseconds(time)
    }

    /// Tells that the process starts, and asks for time until ``ready(_:_:)``: a large store may take minutes.
    package func starting(_ status: String) {
        self.status(status)
        guard isThere else { return }
        Thread.detachNewThread { [self] in
            for _ in 0..<Self.mostExtensions {
                if started.wait(timeout: .now() + .seconds(Self.extensionPause)) == .success { return }
                send(["EXTEND_TIMEOUT_USEC=\(Self.extensionTime)000000"])
            }
        }
    }

    /// Tells that the process serves.
    package func ready(_ status: String, _ logger: Logger) {
        started.signal()
        if !send(["READY=1", Self.line(status)]) {
            logger.warning("the service manager could not be told that the service is ready")
        }
    }

    /// Tells that the process reads its configuration again; ``reloaded()`` ends it.
    package func reloading() {
        // The clock of DispatchTime is CLOCK_MONOTONIC on Linux, as systemd wants it.
        send(["RELOADING=1", "MONOTONIC_USEC=\(DispatchTime.now().uptimeNanoseconds / 1000)"])
    }

    /// Tells that the configuration was read.
    package func reloaded() { send(["READY=1"]) }

    /// Tells that the process stops.
    func stopping() { send(["STOPPING=1", Self.line("stopping")]) }

    /// A sign of life.
    func isAlive() {
        if watchdog != nil { send(["WATCHDOG=1"]) }
    }

    /// Tells what the process does, if that has changed.
    package func status(_ text: String) {
        let isNew = lastStatus.withLock { last in
            defer { last = text }
            return last != text
        }
        if isNew { send([Self.line(text)]) }
    }

    private static func line(_ status: String) -> String {
        "STATUS=\(LogText.escaped(status, limit: 256, spelling: .terminal))"
    }

    @discardableResult
    private func send(_ lines: [String]) -> Bool {
        guard let target else { return true }
        return target.socket.send(Array(lines.joined(separator: "\n").utf8), to: target.address) == 0
    }
}
