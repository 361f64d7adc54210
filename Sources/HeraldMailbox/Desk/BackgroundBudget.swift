import HeraldModel

/// How many background notifications each app may have on each device: a few at once, and a few an hour after that
/// ("Pushing background updates to your App": two or three per hour).
///
/// Remembered is only who has used some of its budget and has not got it back yet. An app of the newsstand kind is owed
/// one notification in 24 hours (Local and Remote Notification Programming Guide, `content-available`): a budget gives at
/// least one an hour, so that this is about devices that save power.
struct BackgroundBudget {
    private struct Debt {
        /// When all that was used has come back.
        var spentUntil: WallTime
        /// The notification that was paid for last: sent again after a lost connection, it costs nothing more.
        var paidFor: NotificationID
    }

    /// In how long a newsstand app is owed one.
    private static let day = Duration.seconds(86_400)

    private var debts: [Slot: Debt] = [:]
    /// When each newsstand app had its last one.
    private var lastGiven: [Slot: WallTime] = [:]
    private var newsstand: Set<AppNumber> = []
    /// In how long one more comes back; zero if nothing is limited.
    private let interval: Duration
    private let tolerance: Duration

    /// - Parameters:
    ///   - burst: How many at once; 1 to 1,000.
    ///   - perHour: How many an hour after that, up to 3,600; 0 for no limit.
    init(burst: Int = 3, perHour: Int = 3) {
        interval = perHour > 0 ? .milliseconds(3_600_000 / Int64(min(perHour, 3600))) : .zero
        tolerance = interval * (min(max(1, burst), 1000) - 1)
    }

    /// How many apps on devices are in debt.
    var debtorCount: Int { debts.count }

    /// This app is of the newsstand kind.
    mutating func addNewsstand(_ app: AppNumber) {
        newsstand.insert(app)
    }

    /// When the app may have this notification on the device.
    /// - Returns: nil if it may have it now.
    func due(_ notification: Notification, at now: WallTime) -> WallTime? {
        let slot = notification.slot
        guard let debt = debts[slot], debt.paidFor != notification.uniqueID else { return nil }
        let free = spentUntil(debt, now) - tolerance
        return free > now ? free : nil
    }

    /// From when on a newsstand app is owed one on the device; nil if it is owed one now.
    ///
    /// Ask only about newsstand apps.
    func owedFrom(_ slot: Slot, _ now: WallTime) -> WallTime? {
        guard let last = lastGiven[slot], last <= now, last + Self.day > now else { return nil }
        return last + Self.day
    }

    func isNewsstand(_ app: AppNumber) -> Bool {
        !newsstand.isEmpty && newsstand.contains(app)
    }

    /// The device is sent this notification.
    mutating func charge(_ notification: Notification, at now: WallTime) {
        let slot = notification.slot
        if newsstand.contains(slot.app) { lastGiven[slot] = now }
        guard interval > .zero else { return }
        if let debt = debts[slot] {
            guard debt.paidFor != notification.uniqueID else { return }
            debts[slot] = Debt(spentUntil: spentUntil(debt, now) + interval, paidFor: notification.uniqueID)
        } else {
            debts[slot] = Debt(spentUntil: now + interval, paidFor: notification.uniqueID)
        }
    }

    /// Forgets who is out of debt.
    mutating func forget(at now: WallTime) {
        if !debts.isEmpty { debts = debts.filter { $0.value.spentUntil > now } }
        if !lastGiven.isEmpty { lastGiven = lastGiven.filter { $0.value + Self.day > now } }
    }

    /// Never before now; and further ahead than a full debt can be it is only after the clock was set back: forgiven.
    private func spentUntil(_ debt: Debt, _ now: WallTime) -> WallTime {
        let isPossible = debt.spentUntil - now <= tolerance + interval + .seconds(1)
        return isPossible ? max(debt.spentUntil, now) : now
    }
}
