import Synchronization

/// The rules for requests that may change while connections are open.
///
/// A connection looks at the count once for each burst of requests, and reads the rules when it has changed.
final class LiveRules: Sendable {
    private let rules: Mutex<RequestRules>
    private let count = Atomic<UInt64>(0)

    init(_ rules: RequestRules) {
        self.rules = Mutex(rules)
    }

    /// Counts the changes.
    var generation: UInt64 { count.load(ordering: .acquiring) }

    /// Whether there was a change since that count, which becomes the present one.
    func isNewer(than known: inout UInt64) -> Bool {
        let present = generation
        defer { known = present }
        return known != present
    }

    /// The rules now.
    var current: RequestRules { rules.withLock { $0 } }

    func replace(_ rules: RequestRules) {
        self.rules.withLock { $0 = rules }
        count.add(1, ordering: .releasing)
    }
}
