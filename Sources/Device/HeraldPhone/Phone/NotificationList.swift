import HeraldModel

/// The notifications on the screen, newest first, and the one over the unlocked screen.
struct NotificationList: Codable, Hashable, Sendable {
    /// A banner, which goes away by itself.
    private struct PassingBanner: Codable, Hashable {
        var id: String
        /// UNIX seconds.
        var start: Double
        var end: Double
    }

    private(set) var all: [PhoneState.Shown] = []
    /// The alerts that came to the lock screen since it was locked, newest first.
    private(set) var lockAlerts: [String] = []
    private var passing: PassingBanner?

    /// The notification over the unlocked screen: a banner, else the newest alert that the user has not answered.
    var banner: String? {
        passing?.id ?? all.first { $0.view.place == .banner && $0.view.style == .alert }?.view.id
    }

    subscript(id: String) -> PhoneState.Shown? { all.first { $0.view.id == id } }

    /// Adds the newest notification at the time `now` in UNIX seconds, and drops the oldest above `limit`.
    ///
    /// A banner goes away after `bannerSeconds`.
    mutating func insert(_ shown: PhoneState.Shown, now: Double, bannerSeconds: Double, limit: Int) {
        all.insert(shown, at: 0)
        if shown.view.place == .lockScreen { lockAlerts.insert(shown.view.id, at: 0) }
        if shown.view.place == .banner {
            let banner = PassingBanner(id: shown.view.id, start: now, end: now + bannerSeconds)
            passing = shown.view.style == .alert ? nil : banner
        }
        if all.count > limit, let oldest = all.last { remove(oldest.view.id) }
    }

    @discardableResult
    mutating func remove(_ id: String) -> PhoneState.Shown? {
        guard let index = all.firstIndex(where: { $0.view.id == id }) else { return nil }
        lockAlerts.removeAll { $0 == id }
        if passing?.id == id { passing = nil }
        return all.remove(at: index)
    }

    mutating func removeAll(of app: Topic) {
        for shown in all where shown.app == app { remove(shown.view.id) }
    }

    /// - Returns: The notifications that were on the screen.
    mutating func clear() -> [PhoneState.Shown] {
        defer { self = NotificationList() }
        return all
    }

    /// Hides a banner; alerts stay until they are answered.
    mutating func hideBanner() {
        passing = nil
    }

    /// The time at which a banner goes away, in UNIX seconds.
    var nextTick: Double? { passing?.end }

    /// Hides a banner whose time is over, also if the clock was set back meanwhile.
    mutating func tick(_ now: Double) {
        guard let passing, now >= passing.end || now < passing.start else { return }
        hideBanner()
    }

    mutating func hideLockAlerts() {
        lockAlerts = []
    }
}
