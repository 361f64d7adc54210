package import HeraldModel

/// What a row's `status` says once it is no more `queued`.
package enum FinalStatus: String, CaseIterable, Codable, Sendable {
    /// The service has it.
    case sent
    /// The service said no, or would have: the row is not one that can be sent.
    case refused
    /// It was not sent by the time after which it is worth nothing.
    case expired
    /// It cannot be sent from here: there is no credential for it.
    case failed
}

/// What is written into a row.
package struct RowOutcome: Hashable, Sendable {
    /// What becomes of the row.
    package enum Change: Hashable, Sendable {
        case final(FinalStatus, reason: String?)
        /// Again at that moment; with `uncertain`, it may have been sent this time.
        case later(WallTime, reason: String?, uncertain: Bool, counts: Bool)
        /// It may have been sent, and nobody could say so yet: it is asked for again at that moment, after so many questions.
        case ask(WallTime, reason: String?, questions: Int)
    }

    package let row: Int64
    package let parent: Int64?
    package let change: Change
    /// When it came about.
    package let time: WallTime

    package init(row: Int64, parent: Int64?, change: Change, time: WallTime) {
        self.row = row
        self.parent = parent
        self.change = change
        self.time = time
    }
}
