import HeraldMailbox
import HeraldModel

/// Explains the outcome of an accepted notification, for providers that ask (`herald-explain: 1`).
enum Explanation {
    /// Explains the outcome of a notification.
    ///
    /// With `asksForPast`, Herald does not store it because its `apns-expiration` has passed.
    /// - Returns: One or two sentences in printable ASCII, for a header field.
    static func words(for envelope: Envelope, asksForPast: Bool) -> String {
        let until = envelope.notification.storedUntil
        let words = words(envelope.status, until: until)
        return until == nil && asksForPast
            ? words + " (not stored because apns-expiration has passed: write it in seconds since 1970)"
            : words
    }

    private static func words(_ status: NotificationStatus?, until: WallTime?) -> String {
        guard let status else { return "sent: the provider asked for no storage, and Herald tries one delivery" }
        let end = until.map { "; it expires at \($0.rfc3339)" } ?? ""
        let next = status.next.map { "; Herald tries again at \($0.rfc3339)" } ?? ""
        switch status.state {
        case .storedDeviceOffline:
            return "stored: the device is away; Herald delivers it when the device returns, "
                + "unless a newer notification for the app replaces it\(end)"
        case .storedTokenMissing:
            return "stored: the device is connected, and has not presented the app's token, "
                + "which this service requires; Herald delivers it when the device does\(end)"
        case .storedNotSubscribed:
            return "stored: the device is connected, and has not subscribed to the app's notifications "
                + "on this connection; Herald delivers it when the device does\(end)"
        case .storedPower:
            return "stored: the device saves power; Herald delivers priorities 5 and 1 when it stops saving\(end)"
        case .storedUnacknowledged:
            return "stored: Herald has sent it to the device, which has not acknowledged it yet\(end)"
        case .storedBacklog:
            return "stored: Herald sends it to the device after the notifications before it\(end)"
        case .storedBeforeDelivery:
            return "stored: Herald sends it to the device now\(end)"
        case .storedBudget:
            return "held: the background budget of the app on this device is spent\(next)\(end)"
        case .replaced:
            return "stored, and already replaced by a newer notification for the same app on the same device"
        case .delivered, .deliveredFromStorage:
            return "delivered: the device has acknowledged it"
        case .deliveredUnacknowledged, .deliveredUnacknowledgedFromStorage:
            return "delivered: Herald has written it to the device's connection, which does not acknowledge"
        case .refusedByDevice, .refusedByDeviceFromStorage:
            return "refused by the device: it answered with an error, and Herald does not send it again"
        case .refusedByEndedConnections:
            return "refused by the device: its client ended the connection each time Herald sent it, "
                + "and Herald does not send it again"
        case .discardedDisabled, .discardedDisabledFromStorage:
            return "discarded: the user has switched off the app's notifications on this device"
        case .discardedUnregistered, .discardedUnregisteredFromStorage:
            return "discarded: the app was removed from the device meanwhile; the device token is invalid"
        case .discardedExpired, .discardedExpiredFromStorage:
            return "discarded: it expired before Herald could send it"
        case .discardedUndeliverable:
            return "discarded: the payload is not a JSON object, so no app could read it"
        case .discardedTooLarge, .discardedTooLargeFromStorage:
            return "discarded: it is larger than the device accepts"
        case .discardedDeviceOffline:
            return "discarded: the provider asked for no storage, and the device is away"
        case .discardedTokenMissing:
            return "discarded: the provider asked for no storage, and the device has not presented the app's token, "
                + "which this service requires"
        case .discardedNotSubscribed:
            return "discarded: the provider asked for no storage, and the device has not subscribed to the app's "
                + "notifications on this connection"
        case .discardedPower:
            return "discarded: the provider asked for no storage, and the device saves power"
        case .discardedBacklog:
            return "discarded: the provider asked for no storage, and the device has too many unacknowledged ones"
        case .discardedBudget:
            let next = status.next.map { "; the next one is possible at \($0.rfc3339)" } ?? ""
            return "discarded: the provider asked for no storage, and the background budget is spent\(next)"
        case .received, .refusedByDrill, .lostByDrill, .answerWithheldByDrill, .drillUnheeded, .refusedByService,
            .sentToSubscribers, .storedForSubscribers, .discardedChannelDeleted:
            // An accepted notification with an answer never has these states.
            return status.state.words
        }
    }
}
