import HeraldModel
import NIOCore

/// A time by both clocks: the service's, which a test may move, and the machine's monotonic clock.
struct DrillMoment {
    var wall: WallTime
    var uptime: NIODeadline
}

/// The facts about a notification that drills select by.
struct DrillSubject {
    var slot: Slot
    var topic: Topic?
}

/// The effect of the active drills on one request.
struct DrillVerdict: Equatable {
    /// The drill in words, for an explanation: `drill 3`, or `the payload's drill`.
    var cause: String
    /// Delay of the answer.
    var latency: Duration?
    /// The other effect: every kind but `latency` and `streams`.
    var outcome: Drill.Kind?
    /// The most requests with this payload for one device token that a payload's drill hits; nil for no limit.
    var first: Int?
}

/// The active drills: decides which requests they hit, without clock, socket or randomness except the seeds.
///
/// A drill counts the requests that it could hit. Only its seed and that count decide. So the choice is the same for the
/// same order of requests, whatever other drills are active.
struct ActiveDrills {
    struct Entry {
        let id: Int
        let drill: Drill
        let isConfigured: Bool
        let began: DrillMoment
        /// The beginning of its time: its start, or its last renewal.
        var renewed: DrillMoment
        /// Requests that it could have hit so far.
        var seen: UInt64 = 0
        var hits = 0

        /// The time that is left by either clock, so that a clock that is set back does not prolong it.
        ///
        /// A lease follows the machine's clock alone: a test may move the service's clock while a drill lasts.
        func remaining(at now: DrillMoment) -> Duration {
            let byUptime = drill.duration - .nanoseconds((now.uptime - renewed.uptime).nanoseconds)
            return max(.zero, drill.isLease ? byUptime : min(byUptime, renewed.wall + drill.duration - now.wall))
        }

        func isOver(at now: DrillMoment) -> Bool { remaining(at: now) <= .zero }

        /// Whether it has hit as many requests as it may.
        var isSpent: Bool { drill.first.map { hits >= $0 } ?? false }
    }

    private(set) var entries: [Entry] = []
    private var lastID = 0

    /// Starts a drill; `id` is the number that a cluster has given it, nil for the next one.
    /// - Returns: nil if the maximum number is active, or a drill of the number.
    mutating func start(_ drill: Drill, id: Int? = nil, isConfigured: Bool, now: DrillMoment) -> Entry? {
        let id = id ?? lastID + 1
        guard entries.count < DrillLimits.count, !entries.contains(where: { $0.id == id }) else { return nil }
        lastID = max(lastID, id)
        let entry = Entry(id: id, drill: drill, isConfigured: isConfigured, began: now, renewed: now)
        entries.append(entry)
        return entry
    }

    /// Gives a lease its whole time again.
    /// - Returns: nil if there is no lease of the number.
    mutating func renew(_ id: Int, now: DrillMoment) -> Entry? {
        guard let index = entries.firstIndex(where: { $0.id == id && $0.drill.isLease }) else { return nil }
        entries[index].renewed = now
        return entries[index]
    }

    mutating func stop(where matches: (Entry) -> Bool) -> [Entry] {
        let ended = entries.filter(matches)
        entries.removeAll(where: matches)
        return ended
    }

    /// Applies the drills to a request.
    /// - Returns: The verdict, and the kind of each drill that hit.
    mutating func judge(_ subject: DrillSubject, now: DrillMoment) -> (verdict: DrillVerdict, hits: [String])? {
        var verdict: DrillVerdict?
        var hits: [String] = []
        for index in entries.indices where !entries[index].isOver(at: now) {
            let drill = entries[index].drill
            guard drill.covers(subject) else { continue }
            let number = entries[index].seen
            entries[index].seen &+= 1
            guard drill.hits(number), !entries[index].isSpent else { continue }
            var next = verdict ?? DrillVerdict(cause: "drill \(entries[index].id)")
            // The oldest drill with an outcome wins; latency combines with every outcome.
            guard drill.add(to: &next, request: number) else { continue }
            verdict = next
            entries[index].hits += 1
            hits.append(drill.kind.name)
        }
        return verdict.map { ($0, hits) }
    }

    /// The number of streams to announce; nil for the usual number.
    func streams(at now: DrillMoment) -> Int? {
        var fewest: Int?
        for entry in entries where !entry.isOver(at: now) {
            guard case .streams(let count, let period) = entry.drill.kind else { continue }
            if let period {
                let passed = (now.uptime - entry.began.uptime).nanoseconds / TimeAmount(period).nanoseconds
                if passed % 2 == 1 { continue }
            }
            fewest = min(fewest ?? count, count)
        }
        return fewest
    }
}

extension Drill {
    /// Whether the drill may hit a request.
    fileprivate func covers(_ subject: DrillSubject) -> Bool {
        if case .streams = kind { return false }
        switch target {
        case .everybody: return true
        case .topic(let topic): return subject.topic == topic
        case .slot(let slot): return subject.slot == slot
        }
    }

    /// Whether it hits the request with a number, counted from 0.
    fileprivate func hits(_ number: UInt64) -> Bool {
        share >= 1 || fraction(number, 0) < share
    }

    /// Adds the drill's effect to a verdict.
    /// - Returns: false if an older drill already has that effect.
    fileprivate func add(to verdict: inout DrillVerdict, request number: UInt64) -> Bool {
        if case .latency(let range) = kind {
            guard verdict.latency == nil else { return false }
            verdict.latency = range.lowerBound + (range.upperBound - range.lowerBound) * fraction(number, 1)
        } else {
            guard verdict.outcome == nil else { return false }
            verdict.outcome = kind
        }
        return true
    }

    /// A number from 0 up to 1, the same for the same seed, request and purpose: SplitMix64 (Steele, Lea and Flood,
    /// 2014) over a counter.
    private func fraction(_ number: UInt64, _ purpose: UInt64) -> Double {
        var value = (seed ^ kind.salt) &+ (number &* 2 &+ purpose &+ 1) &* 0x9E37_79B9_7F4A_7C15
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return Double((value ^ (value >> 31)) >> 11) * 0x1p-53
    }
}

extension Drill.Kind {
    /// A number per kind, so that drills with the same seed hit different requests.
    fileprivate var salt: UInt64 {
        let number: UInt64 =
            switch self {
            case .refuse, .refuseAs: 1
            case .latency: 2
            case .silence(let isAccepted): isAccepted ? 3 : 4
            case .goAway: 5
            case .streams: 6
            case .drop: 7
            case .shutdown: 8
            case .reset(let isAccepted): isAccepted ? 9 : 10
            case .refuseStream: 11
            }
        return number &* 0xD6E8_FEB8_6659_FD93
    }
}
