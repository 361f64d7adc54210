import HeraldCluster
import NIOCore
import Synchronization

/// The virtual time of a simulated cluster: a queue of events, which one thread runs in the order of their moments.
final class SimTime: ClusterScheduler {
    private struct Event {
        let moment: Int64
        let number: UInt64
        let work: @Sendable () -> Void

        static func < (left: Event, right: Event) -> Bool {
            left.moment == right.moment ? left.number < right.number : left.moment < right.moment
        }
    }

    private struct State {
        var nanoseconds: Int64 = 1
        var lastNumber: UInt64 = 0
        /// A binary heap: an event is not later than those at twice its index plus one and plus two.
        var heap: [Event] = []
    }

    private let state = Mutex(State())

    var now: NIODeadline { .uptimeNanoseconds(UInt64(nanoseconds)) }

    /// The time since the beginning.
    var nanoseconds: Int64 { state.withLock { $0.nanoseconds } }

    func run(after delay: Duration, _ work: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.lastNumber += 1
            let moment = state.nanoseconds + TimeAmount(delay).nanoseconds
            let event = Event(moment: moment, number: state.lastNumber, work: work)
            state.heap.append(event)
            var child = state.heap.count - 1
            while child > 0 {
                let parent = state.heap[(child - 1) / 2]
                guard event < parent else { break }
                state.heap[child] = parent
                child = (child - 1) / 2
            }
            state.heap[child] = event
        }
    }

    /// Drops all events.
    func end() {
        let events = state.withLock { state in
            defer { state.heap = [] }
            return state.heap
        }
        // Outside the lock: what ends with them may ask for the time.
        withExtendedLifetime(events) {}
    }

    /// Runs all events of the next while.
    func pass(_ duration: Duration) {
        let end = nanoseconds + TimeAmount(duration).nanoseconds
        while let work = next(until: end) { work() }
        state.withLock { $0.nanoseconds = end }
    }

    private func next(until end: Int64) -> (@Sendable () -> Void)? {
        state.withLock { state in
            guard let first = state.heap.first, first.moment <= end else { return nil }
            let last = state.heap.removeLast()
            let count = state.heap.count
            if count > 0 {
                var parent = 0
                while 2 * parent + 1 < count {
                    var child = 2 * parent + 1
                    var least = state.heap[child]
                    if child + 1 < count {
                        let other = state.heap[child + 1]
                        if other < least { (child, least) = (child + 1, other) }
                    }
                    guard least < last else { break }
                    state.heap[parent] = least
                    parent = child
                }
                state.heap[parent] = last
            }
            state.nanoseconds = max(state.nanoseconds, first.moment)
            return first.work
        }
    }
}

/// SplitMix64: the same numbers for the same seed, everywhere.
struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    mutating func below(_ limit: Int) -> Int { Int(truncatingIfNeeded: next() >> 33) % limit }

    /// Whether something happens that does so once in `count` times.
    mutating func oneIn(_ count: Int) -> Bool { below(count) == 0 }
}

/// The chance of a simulated cluster, which decides everything from one seed.
final class SimChance: SimLog.Chance {
    struct State {
        var random: SeededGenerator
        /// Whether nothing goes wrong any more.
        var isCalm = false
    }

    let state: Mutex<State>

    init(seed: UInt64) {
        state = Mutex(State(random: SeededGenerator(state: seed)))
    }

    func below(_ limit: Int) -> Int { state.withLock { $0.random.below(limit) } }

    /// Whether something goes wrong that does so once in `count` times.
    func fails(oneIn count: Int) -> Bool { state.withLock { !$0.isCalm && $0.random.oneIn(count) } }

    func setCalm(_ isCalm: Bool) { state.withLock { $0.isCalm = isCalm } }

    private func milliseconds(_ limit: Int) -> Duration { .milliseconds(below(limit)) }

    func fate(of message: LogMessage) -> SimLog.Fate {
        state.withLock { state in
            let short = Duration.microseconds(200 + state.random.below(3_000))
            let answered = Duration.microseconds(100 + state.random.below(2_000))
            guard !state.isCalm else { return .stored(short, answered: answered) }
            switch state.random.below(24) {
            case 0: return .unknown(appliedAfter: nil)
            case 1: return .unknown(appliedAfter: short)
            // The sender gives up long before.
            case 2: return .unknown(appliedAfter: .milliseconds(500 + state.random.below(5_000)))
            case 3: return .notSent
            case 4: return .refused
            case 5: return .stored(.milliseconds(state.random.below(800)), answered: answered)
            case 6: return .stored(short, answered: .milliseconds(state.random.below(190)))
            default: return .stored(short, answered: answered)
            }
        }
    }

    func lag() -> Duration {
        if fails(oneIn: 12) { return milliseconds(900) }
        return .microseconds(100 + below(4_000))
    }

    func delay() -> Duration {
        if fails(oneIn: 20) { return milliseconds(100) }
        return .microseconds(100 + below(1_000))
    }

    func replica() -> Int { below(3) }
}
