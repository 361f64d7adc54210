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
    fileprivate var generation: UInt64 { count.load(ordering: .acquiring) }

    /// The current rules.
    var current: RequestRules { rules.withLock { $0 } }

    func replace(_ rules: RequestRules) {
        self.rules.withLock { $0 = rules }
        count.add(1, ordering: .releasing)
    }
}

/// A value that a connection makes from the rules, and makes again once they change.
struct MadeFromRules<Value> {
    private(set) var value: Value
    private var generation: UInt64

    init(_ rules: ReloadableRules, _ make: () -> Value) {
        generation = rules.generation
        value = make()
    }

    mutating func refresh(_ rules: ReloadableRules, _ make: () -> Value) {
        let present = rules.generation
        guard generation != present else { return }
        generation = present
        value = make()
    }
}
