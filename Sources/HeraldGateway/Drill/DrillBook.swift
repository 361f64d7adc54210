import HeraldModel
import NIOCore

/// A moment by both clocks: the service's, which a test moves, and the machine's, which nobody sets back.
struct DrillMoment {
    var wall: WallTime
    var uptime: NIODeadline
}

/// What a drill may choose its victims by.
struct DrillSubject {
    /// Where the notification would go.
    var slot: Slot
    /// What the provider sends to.
    var topic: Topic?
}

/// What drills do to one request.
struct DrillVerdict: Equatable {
    /// What becomes of a request, apart from waiting.
    enum Outcome: Equatable {
        case refuse(Rejection, retryAfter: Int?)
        case silence(isAccepted: Bool)
        case goAway(Rejection?)
        case drop
        case shutdown
    }

    /// Who does it, in words for an explanation: `drill 3`, or `the payload's drill`.
    var origin: String
    /// How long the answer waits.
    var latency: Duration?
    var outcome: Outcome?
}

/// Which drills are on, and who is hit: decides, knows no clock, no socket and no randomness but its seeds.
///
/// A drill counts the requests that it could hit, and hits the n-th or does not by its seed and n alone. So the choice is
/// the same for the same order of requests, whatever other drills are on.
struct DrillBook {
    /// A drill that is on.
    struct Entry {
        let id: Int
        let drill: Drill
        let isConfigured: Bool
        let began: DrillMoment
        /// Requests that it could have hit.
        var seen: UInt64 = 0
        var hits = 0

        /// When it ends by the service's clock.
        var ends: WallTime { began.wall + drill.duration }

        /// Whether it is over: by whichever clock is first, so that a clock set back prolongs nothing.
        func isOver(at now: DrillMoment) -> Bool {
            ends <= now.wall || began.uptime + TimeAmount(drill.duration) <= now.uptime
        }
    }

    private(set) var entries: [Entry] = []
    private var lastID = 0

    /// Begins a drill.
    /// - Returns: nil if as many as may be are on already.
    mutating func start(_ drill: Drill, isConfigured: Bool, now: DrillMoment) -> Entry? {
        guard entries.count < DrillLimits.count else { return nil }
        lastID += 1
        let entry = Entry(id: lastID, drill: drill, isConfigured: isConfigured, began: now)
        entries.append(entry)
        return entry
    }

    /// Ends the drills that match.
    /// - Returns: Those that were ended.
    mutating func stop(where matches: (Entry) -> Bool) -> [Entry] {
        let ended = entries.filter(matches)
        entries.removeAll(where: matches)
        return ended
    }

    /// Decides what happens to a request.
    /// - Returns: The verdict, and the kind of each drill that hit.
    mutating func judge(_ subject: DrillSubject, now: DrillMoment) -> (verdict: DrillVerdict, hits: [String])? {
        var verdict: DrillVerdict?
        var hits: [String] = []
        for index in entries.indices where !entries[index].isOver(at: now) {
            let drill = entries[index].drill
            guard drill.covers(subject) else { continue }
            let number = entries[index].seen
            entries[index].seen &+= 1
            guard drill.hits(number) else { continue }
            var next = verdict ?? DrillVerdict(origin: "drill \(entries[index].id)")
            // Of several that would end a request, the oldest drill does; waiting goes with everything.
            guard drill.add(to: &next, request: number) else { continue }
            verdict = next
            entries[index].hits += 1
            hits.append(drill.kind.name)
        }
        return verdict.map { ($0, hits) }
    }

    /// How many streams are welcome; nil for the usual number.
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
    /// Whether a request is one that the drill could hit.
    fileprivate func covers(_ subject: DrillSubject) -> Bool {
        if case .streams = kind { return false }
        switch target {
        case .everybody: return true
        case .topic(let topic): return subject.topic == topic
        case .slot(let slot): return subject.slot == slot
        }
    }

    /// Whether it hits the request of that number, counted from 0.
    fileprivate func hits(_ number: UInt64) -> Bool {
        share >= 1 || fraction(number, 0) < share
    }

    /// Adds what the drill does to a verdict.
    /// - Returns: false if nothing was left to do for it.
    fileprivate func add(to verdict: inout DrillVerdict, request number: UInt64) -> Bool {
        if case .latency(let range) = kind {
            guard verdict.latency == nil else { return false }
            verdict.latency = range.lowerBound + (range.upperBound - range.lowerBound) * fraction(number, 1)
            return true
        }
        guard verdict.outcome == nil else { return false }
        switch kind {
        case .refuse(let rejection, let retryAfter):
            verdict.outcome = .refuse(rejection, retryAfter: retryAfter.map { Int($0.components.seconds) })
        case .silence(let isAccepted): verdict.outcome = .silence(isAccepted: isAccepted)
        case .goAway(let rejection): verdict.outcome = .goAway(rejection)
        case .drop: verdict.outcome = .drop
        case .shutdown: verdict.outcome = .shutdown
        case .latency, .streams: return false
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
    /// Another number for each kind, so that drills of one seed do not all choose the same victims.
    fileprivate var salt: UInt64 {
        let number: UInt64 =
            switch self {
            case .refuse: 1
            case .latency: 2
            case .silence(let isAccepted): isAccepted ? 3 : 4
            case .goAway: 5
            case .streams: 6
            case .drop: 7
            case .shutdown: 8
            }
        return number &* 0xD6E8_FEB8_6659_FD93
    }
}
