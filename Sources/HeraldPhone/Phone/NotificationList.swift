import HeraldModel

/// The notifications on the screen, newest first, and the banner.
struct NotificationList: Codable, Hashable, Sendable {
    private(set) var all: [PhoneState.Shown] = []
    /// The notification that is a banner, until it is closed, opened or replaced.
    private(set) var banner: String?
    /// The alerts that came to the lock screen since it was locked, newest first.
    private(set) var lockAlerts: [String] = []

    subscript(id: String) -> PhoneState.Shown? { all.first { $0.view.id == id } }

    /// Adds the newest notification, and drops the oldest above `limit`.
    mutating func insert(_ shown: PhoneState.Shown, limit: Int) {
        all.insert(shown, at: 0)
        if shown.view.place == .banner { banner = shown.view.id }
        if shown.view.place == .lockScreen { lockAlerts.insert(shown.view.id, at: 0) }
        if all.count > limit, let oldest = all.last { remove(oldest.view.id) }
    }

    @discardableResult
    mutating func remove(_ id: String) -> PhoneState.Shown? {
        guard let index = all.firstIndex(where: { $0.view.id == id }) else { return nil }
        if banner == id { banner = nil }
        lockAlerts.removeAll { $0 == id }
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

    mutating func hideBanner() {
        banner = nil
    }

    mutating func hideLockAlerts() {
        lockAlerts = []
    }
}
