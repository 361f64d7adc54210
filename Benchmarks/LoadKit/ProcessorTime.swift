#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Processor time of this process.
package enum ProcessorTime {
    /// User and system time of all threads, in seconds.
    package static var seconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
