import Synchronization

/// The current request rules, which may change while connections are open.
///
/// A connection compares the generation once per burst of requests, and reads the rules again if it changed.
final class ReloadableRules: Sendable {
    private let rules: Mutex<RequestRules>
    private let count = Atomic<UInt64>(0)

    init(_ rules: RequestRules) {
        self.rules = Mutex(rules)
    }

    /// The number of changes.
    var generation: UInt64 { count.load(ordering: .acquiring) }

    /// Whether the rules changed since a generation, which becomes the current one.
    func isNewer(than known: inout UInt64) -> Bool {
        let present = generation
        defer { known = present }
        return known != present
    }

    var current: RequestRules { rules.withLock { $0 } }

    func replace(_ rules: RequestRules) {
        self.rules.withLock { $0 = rules }
        count.add(1, ordering: .releasing)
    }
}
