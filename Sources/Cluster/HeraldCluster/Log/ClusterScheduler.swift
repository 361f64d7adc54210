package import NIOCore
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Runs work later, on one thread: an event loop, or the virtual time of the tests.
package protocol ClusterScheduler: Sendable {
    /// The present on a clock that only runs forward, also while the process or its machine stands still.
    var now: NIODeadline { get }

    /// Runs `work` after a delay, never before this returns.
    func run(after delay: Duration, _ work: @escaping @Sendable () -> Void)
}

extension ClusterScheduler {
    /// The second of the clock.
    var second: UInt32 { UInt32(truncatingIfNeeded: now.uptimeNanoseconds / 1_000_000_000) }

    /// Makes a callback that fails by itself after a time: a later result is dropped.
    func bounded<Value: Sendable>(
        within time: Duration,
        failing error: any Error,
        _ done: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) -> @Sendable (Result<Value, any Error>) -> Void {
        let bounded = BoundedCallback(done)
        run(after: time) { bounded.end(.failure(error)) }
        return { bounded.end($0) }
    }
}

/// A callback that is called once.
private final class BoundedCallback<Value: Sendable>: Sendable {
    private let done: Mutex<(@Sendable (Result<Value, any Error>) -> Void)?>

    init(_ done: @escaping @Sendable (Result<Value, any Error>) -> Void) {
        self.done = Mutex(done)
    }

    func end(_ result: Result<Value, any Error>) {
        done.withLock { $0.take() }?(result)
    }
}

/// The scheduler of an event loop.
package struct EventLoopScheduler: ClusterScheduler {
    private let eventLoop: any EventLoop

    package init(_ eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
    }

    package var now: NIODeadline {
        #if os(Linux)
        // NIO's clock leaves out the time in which the machine was suspended.
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return .uptimeNanoseconds(UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
        #else
        return .now()
        #endif
    }

    package func run(after delay: Duration, _ work: @escaping @Sendable () -> Void) {
        if delay == .zero {
            eventLoop.execute(work)
        } else {
            eventLoop.scheduleTask(in: TimeAmount(delay), work)
        }
    }
}
