import Foundation

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Metrics of the process, under the names of all Prometheus clients, read on demand.
///
/// Memory, descriptors and the start time come from `/proc`, and are absent without it.
enum ProcessMetrics {
    static func text() -> String {
        var text = family("process_cpu_seconds_total", "counter", cpuSeconds())
        if let count = openDescriptors() { text += family("process_open_fds", "gauge", Double(count)) }
        if let limit = descriptorLimit() { text += family("process_max_fds", "gauge", limit) }
        if let memory = memory() {
            text += family("process_resident_memory_bytes", "gauge", memory.resident)
            text += family("process_virtual_memory_bytes", "gauge", memory.virtual)
        }
        if let started { text += family("process_start_time_seconds", "gauge", started) }
        return text
    }

    private static func family(_ name: String, _ kind: String, _ value: Double) -> String {
        MetricText.header(name, kind) + MetricText.line(name, "", MetricText.number(value))
    }

    private static func cpuSeconds() -> Double {
        var usage = rusage()
        #if canImport(Glibc)
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        #else
        getrusage(RUSAGE_SELF, &usage)
        #endif
        func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }

    private static func openDescriptors() -> Int? {
        guard let folder = opendir("/proc/self/fd") else { return nil }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        // Without `.`, `..` and the descriptor of this folder.
        return max(0, count - 3)
    }

    private static func descriptorLimit() -> Double? {
        var limit = rlimit()
        #if canImport(Glibc)
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return nil }
        #else
        guard getrlimit(RLIMIT_NOFILE, &limit) == 0 else { return nil }
        #endif
        return Double(limit.rlim_cur)
    }

    private static func memory() -> (resident: Double, virtual: Double)? {
        guard let text = read("/proc/self/statm") else { return nil }
        let pages = text.split(separator: " ").prefix(2).compactMap { Double($0) }
        guard pages.count == 2 else { return nil }
        let size = Double(sysconf(Int32(_SC_PAGESIZE)))
        return (pages[1] * size, pages[0] * size)
    }

    /// Seconds since 1970 by the system's clock.
    private static let started: Double? = {
        // The 22nd field. The second is a name in parentheses that may contain anything.
        guard let stat = read("/proc/self/stat"), let bracket = stat.lastIndex(of: ")"),
            let ticks = stat[bracket...].split(separator: " ").dropFirst(20).first.flatMap({ Double($0) }),
            let boot = read("/proc/stat")?.split(separator: "\n").first(where: { $0.hasPrefix("btime ") }),
            let seconds = boot.split(separator: " ").last.flatMap({ Double($0) })
        else { return nil }
        return seconds + ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
    }()

    private static func read(_ path: String) -> String? {
        try? String(contentsOfFile: path, encoding: .utf8)
    }
}
