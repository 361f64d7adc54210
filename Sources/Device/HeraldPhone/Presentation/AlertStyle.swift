/// The user's style for the alerts of an app on an unlocked screen.
///
/// A locked screen shows the alerts of every style.
public enum AlertStyle: String, Codable, Hashable, Sendable, CaseIterable {
    /// Alerts are only in the list of notifications.
    case none
    /// A banner, which goes away by itself after ``PhoneLimits/bannerSeconds``.
    case banner
    /// An alert, which stays until the user answers it.
    case alert
}
