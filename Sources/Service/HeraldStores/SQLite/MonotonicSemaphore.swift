#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A counting semaphore whose timeouts follow the time that really passes.
///
/// A timeout of `DispatchSemaphore` follows the wall clock on Linux: if that is set back, the wait lasts so much longer.
// Unchecked: the pointers never change, and `count` is used under `mutex` only.
final class MonotonicSemaphore: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var count = 0

    init() {
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
        condition.initialize(to: pthread_cond_t())
        #if os(Linux)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
        #else
        pthread_cond_init(condition, nil)
        #endif
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    func signal() {
        pthread_mutex_lock(mutex)
        count += 1
        pthread_cond_signal(condition)
        pthread_mutex_unlock(mutex)
    }

    /// Waits for a signal; at most for the duration, if there is one.
    func wait(for duration: Duration? = nil) {
        let end = duration.map { ContinuousClock.now + $0 }
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while count == 0 {
            if let end {
                let left = end - .now
                guard left > .zero else { return }
                sleep(for: left)
            } else {
                pthread_cond_wait(condition, mutex)
            }
        }
        count -= 1
    }

    private func sleep(for duration: Duration) {
        var moment = timespec()
        #if os(Linux)
        clock_gettime(CLOCK_MONOTONIC, &moment)
        #endif
        let (seconds, attoseconds) = duration.components
        let nanoseconds = moment.tv_nsec + Int(attoseconds / 1_000_000_000)
        moment.tv_sec += Int(seconds) + nanoseconds / 1_000_000_000
        moment.tv_nsec = nanoseconds % 1_000_000_000
        #if os(Linux)
        pthread_cond_timedwait(condition, mutex, &moment)
        #else
        pthread_cond_timedwait_relative_np(condition, mutex, &moment)
        #endif
    }
}
