import Foundation
import HeraldListener
import NIOCore

/// Divides the file descriptors of the process among its listeners.
///
/// Without it strangers could use up all descriptors, and the store, the trust folder and the operator's commands would
/// fail. The reserve belongs to these alone.
package struct DescriptorShares: Equatable {
    /// For the store, the trust folder, and the connections of operators.
    private static let reserve = 128
    /// Each event loop has an epoll instance, a timer and an eventfd.
    private static let perEventLoop = 3
    /// The least that each listener needs to be of use.
    static let minimum = 16

    /// Connections for each listener, in the order of ``ServerConfiguration/listeners``; nil if none is limited.
    package let connections: [Int]?
    /// Connections of the console's port, and of its socket.
    let consoleConnections: Int
    package let limit: Int
    /// Descriptors that belong to no listener.
    let reserve: Int
    /// Whether the listeners get less than a tenth of the connections that they want.
    package let isScarce: Bool

    /// - Throws: ``CommandError/Code/configuration`` if there are too few descriptors for all.
    package init(
        among configuration: ServerConfiguration,
        of limit: Int,
        eventLoops: Int = NIOSingletons.groupLoopCountSuggestion
    ) throws {
        self.limit = limit
        reserve = Self.reserve + Self.perEventLoop * eventLoops
        let wanted = configuration.listeners.map { configuration[keyPath: $0] }
        let beyond = wanted.reduce(0) { $0 + $1.maximumDescriptors - $1.maximumConnections }
        let console = 2 * configuration.consoleConnections
        guard limit < reserve + console + beyond + wanted.reduce(0, { $0 + $1.maximumConnections }) else {
            (connections, isScarce) = (nil, false)
            consoleConnections = configuration.consoleConnections
            return
        }
        // Each gets the minimum, and the rest in proportion to what it wants.
        consoleConnections = min(configuration.consoleConnections, max(Self.minimum, limit / 64))
        let rest = limit - reserve - 2 * consoleConnections - beyond - wanted.count * Self.minimum
        guard rest >= 0 else {
            let needed = limit - rest
            throw CommandError(
                .configuration,
                "this process may open \(limit) files, and needs \(needed) at least: raise the limit with "
                    + "`ulimit -n \(needed)`, or with LimitNOFILE= in the unit of systemd"
            )
        }
        let sum = wanted.reduce(0) { $0 + $1.maximumConnections }
        connections = wanted.map { min($0.maximumConnections, Self.minimum + rest * $0.maximumConnections / sum) }
        isScarce = rest < sum / 10
    }

    /// Limits the listeners.
    /// - Returns: The listeners and their connections, in words; nil if nothing was limited.
    package func apply(to configuration: inout ServerConfiguration) -> String? {
        guard let connections else { return nil }
        configuration.consoleConnections = consoleConnections
        var words: [String] = []
        for (path, count) in zip(configuration.listeners, connections) {
            configuration[keyPath: path].maximumConnections = count
            words.append("\(configuration[keyPath: path].name) \(count)")
        }
        return words.joined(separator: ", ")
    }
}

/// The limit of open files of this process (`RLIMIT_NOFILE`).
package enum DescriptorLimit {
    /// The descriptors of a listener beside which a process has other work: at most a quarter of the limit, and at least 16.
    package static func share(of wanted: Int) -> Int { max(DescriptorShares.minimum, min(wanted, raise() / 4)) }

    /// Raises the soft limit to the hard one.
    /// - Returns: The limit that holds now.
    package static func raise() -> Int {
        var limit = rlimit()
        #if canImport(Glibc)
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
        let resource = RLIMIT_NOFILE
        #endif
        guard getrlimit(resource, &limit) == 0 else { return .max }
        var raised = limit
        raised.rlim_cur = limit.rlim_max
        // macOS refuses more than OPEN_MAX; the soft limit stays then.
        if setrlimit(resource, &raised) == 0 { limit = raised }
        return Int(clamping: limit.rlim_cur)
    }
}
