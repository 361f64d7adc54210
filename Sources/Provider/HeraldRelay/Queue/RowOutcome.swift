package import HeraldModel

/// Final value of a row's `status`.
package enum FinalStatus: String, CaseIterable, Codable, Sendable {
    /// The service accepted it.
    case sent
    /// The service refused it, or the row is invalid.
    case refused
    /// Its time was over before it was sent.
    case expired
    /// It cannot be sent from here, for example because no credential fits.
    case failed
}

/// A change to write into a row.
package struct RowOutcome: Hashable, Sendable {
    /// New state of the row.
    package enum Change: Hashable, Sendable {
        case final(FinalStatus, reason: String?)
        /// Retry at that time. With `uncertain` this attempt may have arrived; `counts` counts it as an attempt.
        case later(WallTime, reason: String?, uncertain: Bool, counts: Bool)
        /// Look it up in the journal again at that time, after `lookups` lookups.
        case lookUp(WallTime, reason: String?, lookups: Int)
    }

    /// The reason of a row in doubt: it may have been sent, and nobody knows.
    static let inDoubt = RowReason.uncertain.rawValue

    /// A token that the service reported dead.
    struct DeadTokenReport: Hashable, Sendable {
        let token: DeadToken
        /// Whether marking is suspended.
        let isHeld: Bool
    }

    package let row: Int64
    /// The `apns-id` under which it was sent: a row that is queued anew gets another one.
    package let apnsID: String?
    package let parent: Int64?
    package let change: Change
    /// When the outcome was known.
    package let time: WallTime
    /// The reason in one sentence, for people; nil if the reason is the service's.
    package var detail: String?
    /// The dead token of a refused row, marked before the outcome is written.
    var deadToken: DeadTokenReport?

    package init(of row: QueueRow, _ change: Change, at time: WallTime) {
        self.row = row.id
        apnsID = row.apnsID
        parent = row.parent
        self.change = change
        self.time = time
    }
}
