import HeraldMailbox
import HeraldModel

/// What became of a notification that was accepted, in words for a provider that asks (`herald-explain: 1`).
enum Explanation {
    /// The words for a notification.
    ///
    /// - Parameters:
    ///   - letter: The notification.
    ///   - asksForPast: Whether it is not stored because its `apns-expiration` had passed.
    /// - Returns: One sentence or two, printable ASCII: they go into a header field.
    static func words(for letter: Letter, asksForPast: Bool) -> String {
        let notification = letter.notification
        guard let until = notification.storedUntil else {
            let words = words(letter.fate, until: nil)
            return asksForPast
                ? words + " (not stored because apns-expiration had passed: it is a moment, in seconds since 1970)"
                : words
        }
        return words(letter.fate, until: until)
    }

    private static func words(_ fate: Fate?, until: WallTime?) -> String {
        guard let fate else { return "sent: it was not to be stored, and one delivery is tried" }
        let end = until.map { ", until \($0.rfc3339) at the latest" } ?? ""
        switch fate.state {
        case .storedDeviceOffline:
            return
                "stored: the device is away; kept for its return, unless a newer one for the app takes its place\(end)"
        case .storedPower:
            return "stored: the device saves power; priorities 5 and 1 wait until it does so no more\(end)"
        case .storedUnacknowledged:
            return "stored: sent to the device, which has not acknowledged it yet\(end)"
        case .storedBacklog:
            return "stored: sent to the device as soon as there is nothing before it\(end)"
        case .storedBudget:
            let next = fate.next.map { ", next at \($0.rfc3339)" } ?? ""
            return "held: the background budget of the app on this device is spent\(next)\(end)"
        case .replaced:
            return "stored, and replaced already by a newer one for the same app on the same device"
        case .delivered, .deliveredFromStorage:
            return "delivered: the device has acknowledged it"
        case .deliveredUnacknowledged, .deliveredUnacknowledgedFromStorage:
            return "delivered: written to the device's connection, which acknowledges nothing"
        case .refusedByDevice, .refusedByDeviceFromStorage:
            return "refused by the device: it has answered with an error, and is not sent it again"
        case .discardedDisabled, .discardedDisabledFromStorage:
            return "discarded: the user has switched off the app's notifications on this device"
        case .discardedUnregistered, .discardedUnregisteredFromStorage:
            return "discarded: the app was removed from the device meanwhile; the token is dead"
        case .discardedExpired, .discardedExpiredFromStorage:
            return "discarded: its time was over before it could be sent"
        case .discardedUndeliverable:
            return "discarded: the payload is not a JSON object, and no app could read it"
        case .discardedTooLarge, .discardedTooLargeFromStorage:
            return "discarded: it is larger than the device accepts"
        case .discardedDeviceOffline:
            return "discarded: it was not to be stored, and the device is away"
        case .discardedPower:
            return "discarded: it was not to be stored, and the device saves power"
        case .discardedBacklog:
            return "discarded: it was not to be stored, and the device has too many that it has not acknowledged"
        case .discardedBudget:
            let next = fate.next.map { ", next at \($0.rfc3339)" } ?? ""
            return "discarded: it was not to be stored, and the background budget is spent\(next)"
        case .received, .refusedByDrill, .lostByDrill, .answerWithheldByDrill, .sentToSubscribers,
            .storedForSubscribers,
            .discardedChannelDeleted:
            // Fates that an accepted and answered notification has not.
            return fate.state.words
        }
    }
}
