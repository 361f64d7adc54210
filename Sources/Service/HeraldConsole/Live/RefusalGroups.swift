package import HeraldMailbox
package import HeraldModel

/// Counts by minute, for an hour.
package struct MinuteCounts: Sendable {
    static let minutes = 60

    private var counts: [UInt32] = Array(repeating: 0, count: MinuteCounts.minutes)
    private var newest = Int64.min

    package init() {}

    package mutating func add(_ count: Int = 1, at time: WallTime) {
        let minute = MinuteCounts.minute(time)
        // A clock that was set back counts on in the newest minute until it is there again.
        if minute > newest || newest - minute >= Int64(MinuteCounts.minutes) { advance(to: minute) }
        let place = MinuteCounts.place(max(minute, newest))
        counts[place] = counts[place].addingReportingOverflow(UInt32(clamping: count)).partialValue
    }

    /// The counts of the hour until `time`, oldest minute first.
    func last(at time: WallTime) -> [Int] {
        let minute = MinuteCounts.minute(time)
        let isAhead = newest > minute && newest - minute < Int64(MinuteCounts.minutes)
        let end = isAhead ? newest : minute
        return (0..<MinuteCounts.minutes).map { offset in
            let minute = end - Int64(MinuteCounts.minutes - 1 - offset)
            let isKept = minute >= 0 && minute <= newest && newest - minute < Int64(MinuteCounts.minutes)
            guard isKept else { return 0 }
            return Int(counts[MinuteCounts.place(minute)])
        }
    }

    private mutating func advance(to minute: Int64) {
        if newest == .min || minute < newest || minute - newest >= Int64(MinuteCounts.minutes) {
            counts = Array(repeating: 0, count: MinuteCounts.minutes)
        } else {
            for passed in newest + 1...minute { counts[MinuteCounts.place(passed)] = 0 }
        }
        newest = minute
    }

    private static func minute(_ time: WallTime) -> Int64 { max(0, time.seconds) / 60 }
    private static func place(_ minute: Int64) -> Int { Int(minute % Int64(minutes)) }
}

/// Refused requests in groups of provider, topic, environment and reason, in memory.
///
/// A group that was not seen for the longest time makes room for a new one.
package struct RefusalGroups: Sendable {
    package static let capacity = 1024
    static let sampleLimit = 5

    package struct Key: Hashable, Sendable {
        package let sender: SenderNumber
        /// No app where the topic has none.
        package let app: AppNumber
        package let topic: String?
        package let environment: PushEnvironment
        package let reason: RefusalReason
    }

    package struct Sample: Hashable, Sendable {
        let time: WallTime
        let id: NotificationID
        let explanation: String
    }

    package struct Group: Sendable {
        package let key: Key
        package fileprivate(set) var count = 0
        package let first: WallTime
        package fileprivate(set) var last: WallTime
        fileprivate(set) var perMinute = MinuteCounts()
        /// Oldest first.
        fileprivate(set) var samples: [Sample] = []
        fileprivate var seen: UInt64
    }

    private var groups: [Key: Group] = [:]
    /// Requests by provider, refused ones too; forgotten together once there are too many.
    private var requests: [SenderNumber: MinuteCounts] = [:]
    private var clock: UInt64 = 0

    package init() {}

    /// Counts requests of a provider, refused ones too.
    package mutating func count(_ number: Int, of sender: SenderNumber, at time: WallTime) {
        if requests[sender] == nil, requests.count >= RefusalGroups.capacity { requests.removeAll() }
        requests[sender, default: MinuteCounts()].add(number, at: time)
    }

    /// Adds the journal's line of a refused request.
    package mutating func add(_ event: JournalEvent) {
        guard let refusal = event.refusal else { return }
        let key = Key(
            sender: event.request?.sender ?? .unknown,
            app: event.app,
            topic: refusal.topic,
            environment: refusal.environment,
            reason: refusal.reason
        )
        clock += 1
        if groups[key] == nil { makeRoom() }
        var group = groups[key] ?? Group(key: key, first: event.time, last: event.time, seen: clock)
        group.count += 1
        group.last = event.time
        group.seen = clock
        group.perMinute.add(at: event.time)
        if group.samples.count == RefusalGroups.sampleLimit { group.samples.removeFirst() }
        group.samples.append(Sample(time: event.time, id: event.id, explanation: refusal.explanation))
        groups[key] = group
    }

    /// The groups, the last seen first.
    package var all: [Group] { groups.values.sorted { $0.seen > $1.seen } }

    /// The share that a group has of its provider's requests of the last hour; nil if it had none.
    package func share(of group: Group, at time: WallTime) -> Double? {
        let total = requests[group.key.sender]?.last(at: time).reduce(0, +) ?? 0
        guard total > 0 else { return nil }
        return min(1, Double(group.perMinute.last(at: time).reduce(0, +)) / Double(total))
    }

    /// Removes some groups at once, since each look for the oldest ones reads all.
    private mutating func makeRoom() {
        guard groups.count >= RefusalGroups.capacity else { return }
        let oldest = groups.values.sorted { $0.seen < $1.seen }.prefix(RefusalGroups.capacity / 16)
        for group in oldest { groups[group.key] = nil }
    }
}
