import HeraldModel
import HeraldProvider

/// Decides about a notification in doubt: it may have been sent, and no journal knows.
package enum InDoubtChoice: String, Sendable, Hashable, CaseIterable {
    /// Sends it again under the same `apns-id`. The user may see it twice.
    case `repeat`
    /// Sends it again if the second copy replaces the first on the screen.
    case repeatCollapsed = "repeat-collapsed"
    /// Never sends it again. The user may never see it.
    case giveUp = "give-up"

    /// Whether the relay sends the notification again.
    func repeats(_ request: PushRequest) -> Bool {
        switch self {
        case .repeat: true
        // Devices collapse alerts only: a second VoIP push rings again.
        case .repeatCollapsed: request.collapseID != nil && request.pushType == .alert
        case .giveUp: false
        }
    }
}
