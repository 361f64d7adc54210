import LoadKit

/// The topics and the pace of a publisher: its topics in turn, as fast as its window of unacknowledged ones allows, at a
/// rate, or each once.
struct Publishing: Sendable {
    enum Pace: Hashable, Sendable {
        case resting
        case asFastAsTheWindowAllows
        /// Messages per second.
        case perSecond(Double)
        /// Each topic once, as fast as the window allows.
        case each
    }

    let topics: [[UInt8]]
    /// How many are in flight at most.
    let window = 64
    /// Bytes.
    let payload = 300

    private var pace = Pace.resting
    private var began = MonotonicTime.now
    private var next: Int
    /// How many were sent at this pace.
    private var sent = 0
    private var inFlight = 0

    /// Begins with the topic of number `first`, so that publishers begin at different ones.
    init(topics: [[UInt8]], first: Int) {
        self.topics = topics
        next = first
    }

    mutating func set(_ pace: Pace) {
        self.pace = pace
        began = .now
        sent = 0
        if pace == .each { next = 0 }
    }

    mutating func acknowledged() {
        inFlight -= 1
    }

    /// Whether each topic was sent, and all are acknowledged.
    var isDone: Bool { pace == .each && sent == topics.count && inFlight == 0 }

    var isPaced: Bool {
        if case .perSecond = pace { true } else { false }
    }

    /// The topic of the next message to send now; nil if it is not its time.
    mutating func nextTopic() -> [UInt8]? {
        guard !topics.isEmpty else { return nil }
        switch pace {
        case .resting: return nil
        case .asFastAsTheWindowAllows: guard inFlight < window else { return nil }
        case .perSecond(let rate):
            guard Double(sent) < MonotonicTime.now.seconds(since: began) * rate else { return nil }
        case .each: guard inFlight < window, sent < topics.count else { return nil }
        }
        let topic = topics[next % topics.count]
        next += 1
        sent += 1
        inFlight += 1
        return topic
    }
}
