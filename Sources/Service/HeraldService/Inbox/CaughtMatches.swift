import HeraldConsole
import HeraldGateway

/// The messages that match a question so far: decides whether they are enough.
struct CaughtMatches: Sendable {
    private let question: CaughtQuestion
    /// Newest first, at most the question's limit.
    private(set) var items: [CaughtEntry] = []
    /// All that match.
    private(set) var count = 0
    /// The number of the newest message that was looked at.
    private(set) var last: UInt64 = 0
    private var hasEnd: Bool

    init(_ question: CaughtQuestion) {
        self.question = question
        hasEnd = question.until == nil
    }

    var isComplete: Bool { hasEnd && count >= question.count }

    /// Adds newer messages, newest first, with the number of the newest.
    mutating func add(_ newer: (messages: [CaughtMessage], last: UInt64), entry: (CaughtMessage) -> CaughtEntry) {
        last = newer.last
        let found = newer.messages.map(entry).filter { question.query.matches($0) }
        count += found.count
        hasEnd = hasEnd || found.contains { question.until?.matches($0) ?? true }
        items = Array((found + items).prefix(question.limit))
    }
}
