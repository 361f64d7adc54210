import HeraldModel

/// Limits background notifications of each app on each device: a burst, then a rate.
///
/// Apple advises two or three an hour ("Pushing background updates to your App"). Only slots that used some of their budget
/// take memory. A newsstand app is owed one notification in 24 hours even while its device saves power (Local and Remote
/// Notification Programming Guide, `content-available`).
struct BackgroundBudget {
    private struct Debt {
        /// The time at which the whole budget is available again, in microseconds.
        var spentUntil: Int64
        /// The last notification that was charged: a retransmission is free.
        var paidFor: NotificationID
    }

    /// The interval in which a newsstand app is owed one.
    private static let day = Duration.seconds(86_400)

    private var debts: [Slot: Debt] = [:]
    /// The last notification of each newsstand app.
    private var lastGiven: [Slot: WallTime] = [:]
    private var newsstand: Set<AppNumber> = []
    private let limit: RateLimit

    /// - Parameters:
    ///   - burst: The number at once, 1 to 1,000.
    ///   - perHour: The rate after that, up to 3,600; 0 for no limit.
    init(burst: Int = 3, perHour: Int = 3) {
        let interval = perHour > 0 ? 3_600_000 / Int64(min(perHour, 3600)) : 0
        limit = RateLimit(burst: min(burst, 1000), interval: .milliseconds(interval))
    }

    /// The number of slots that used some of their budget.
    var debtorCount: Int { debts.count }

    /// Marks an app as a newsstand app.
    mutating func addNewsstand(_ app: AppNumber) {
        newsstand.insert(app)
    }

    /// The moment from which the budget allows a notification; nil for now.
    func due(_ notification: Notification, at now: WallTime) -> WallTime? {
        let slot = notification.slot
        guard let debt = debts[slot], debt.paidFor != notification.uniqueID else { return nil }
        let wait = limit.wait(debt.spentUntil, at: now.microseconds)
        return wait > 0 ? now + .microseconds(wait) : nil
    }

    /// The moment from which a newsstand app is owed a notification; nil for now.
    func owedFrom(_ slot: Slot, _ now: WallTime) -> WallTime? {
        guard let last = lastGiven[slot], last <= now, last + Self.day > now else { return nil }
        return last + Self.day
    }

    func isNewsstand(_ app: AppNumber) -> Bool {
        !newsstand.isEmpty && newsstand.contains(app)
    }

    /// Charges a notification that is sent.
    mutating func charge(_ notification: Notification, at now: WallTime) {
        let slot = notification.slot
        if newsstand.contains(slot.app) { lastGiven[slot] = now }
        let debt = debts[slot]
        guard limit.interval > 0, debt?.paidFor != notification.uniqueID else { return }
        debts[slot] = Debt(
            spentUntil: limit.used(debt?.spentUntil ?? .min, at: now.microseconds),
            paidFor: notification.uniqueID
        )
    }

    /// Forgets slots whose whole budget is available.
    mutating func forget(at now: WallTime) {
        if !debts.isEmpty { debts = debts.filter { $0.value.spentUntil > now.microseconds } }
        if !lastGiven.isEmpty { lastGiven = lastGiven.filter { $0.value + Self.day > now } }
    }
}
