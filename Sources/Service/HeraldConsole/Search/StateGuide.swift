package import HeraldMailbox
package import HeraldModel

/// The events of the journal in plain words, for people who wonder where their notification is.
package enum StateGuide {
    /// An event, its cause or consequence, and what to do; empty where there is nothing to say.
    package typealias Entry = (words: String, hint: String)

    /// The guide to a state.
    package static func entry(_ state: JournalState) -> Entry {
        switch state {
        case .received: ("Herald accepted the notification.", "")
        case .delivered: ("The device confirmed it.", "Whether it is shown, the app and the device's settings decide.")
        case .deliveredFromStorage:
            (
                "It came from the store, and the device confirmed it.",
                "A cluster stores every notification first; one machine stores those that a device cannot have at once."
            )
        case .deliveredUnacknowledged, .deliveredUnacknowledgedFromStorage:
            (
                "It was sent to the device, which is not asked to confirm it.",
                "The device subscribes at QoS 0. Let it subscribe at QoS 1, and it confirms."
            )
        case .refusedByDevice, .refusedByDeviceFromStorage:
            ("The device refused it.", "Its MQTT client answered with an error: look into the device's log.")
        case .storedDeviceOffline:
            ("It waits for the device, which is not connected.", "It is sent when the device connects.")
        case .refusedByEndedConnections:
            (
                "The device's MQTT client ended its connection each time the notification came.",
                "Herald does not send it again. The client's log says what it cannot read; newer notifications are sent."
            )
        case .storedTokenMissing:
            (
                "It waits: the device is connected, and has not presented the app's token.",
                "This service requires it (require-token). The device publishes the token to apps/TOPIC/token."
            )
        case .storedNotSubscribed:
            (
                "It waits: the device is connected, and has not subscribed to the app's notifications.",
                "It is sent when the device subscribes to apps/TOPIC."
            )
        case .storedPower:
            (
                "It waits, because the device saves power.",
                "Low priority waits for the next wake-up. Send it with apns-priority 10 if it is urgent."
            )
        case .storedUnacknowledged:
            ("It was sent, and the device has not confirmed it yet.", "It is sent again if the device connects anew.")
        case .storedBacklog:
            (
                "It waits behind others that the device has not confirmed.",
                "The device is slow, or its connection hangs: look into the device's log."
            )
        case .storedBudget:
            (
                "It waits, because the app has used up its background pushes.",
                "Send fewer background pushes; a few an hour are sent."
            )
        case .storedBeforeDelivery: ("It is safe in the cluster, and goes to the device next.", "")
        case .replaced:
            (
                "A newer notification took its place before it was delivered.",
                "A device keeps one waiting notification for each app. The newer one has its own life."
            )
        case .sentToSubscribers: ("The broadcast went to the connected subscribers of the channel.", "")
        case .storedForSubscribers: ("The broadcast is kept for devices that subscribe later.", "")
        case .refusedByService:
            ("Herald refused the request.", "The provider got the reason in the answer.")
        case .refusedByDrill: ("A drill refused it.", drillHint)
        case .lostByDrill: ("A drill lost it, and the provider got no answer.", drillHint)
        case .answerWithheldByDrill: ("Herald accepted it, and a drill withheld the answer.", drillHint)
        case .drillUnheeded:
            (
                "Its payload asks for a drill, which had no effect.",
                "Payload drills are off, or it came through the binary interface. A test of failures needs payload-drills."
            )
        default: discarded(state)
        }
    }

    private static let drillHint = "This is an exercise: `herald drill list` shows the drills, and stops them."

    private static func discarded(_ state: JournalState) -> Entry {
        switch state {
        case .discardedUnregistered, .discardedUnregisteredFromStorage:
            (
                "It was thrown away: the app is not on the device any more.",
                "Providers get 410 Unregistered for this token. Delete the token."
            )
        case .discardedExpired, .discardedExpiredFromStorage:
            (
                "It was thrown away: its time was over.",
                "apns-expiration sets the time. The device was away or busy until then."
            )
        case .discardedDisabled, .discardedDisabledFromStorage:
            (
                "It was thrown away: the user has turned off notifications of this app.",
                "Nothing is wrong. The user can turn them on in the device's settings."
            )
        case .discardedUndeliverable:
            (
                "It was thrown away: its payload is not a JSON object.",
                "Mend the payload: `herald check` tells what is wrong."
            )
        case .discardedTooLarge, .discardedTooLargeFromStorage:
            (
                "It was thrown away: it is larger than the device accepts.",
                "The device sets its maximum packet size when it connects. Send less, or let it accept more."
            )
        case .discardedDeviceOffline:
            (
                "It was thrown away: the device was away, and it was not to be stored.",
                "It had apns-expiration 0. Leave this out, and it waits for the device."
            )
        case .discardedTokenMissing:
            (
                "It was thrown away: the device has not presented the app's token, and it was not to be stored.",
                "Leave out apns-expiration 0, and it waits until the device presents its token."
            )
        case .discardedNotSubscribed:
            (
                "It was thrown away: the device has not subscribed to the app, and it was not to be stored.",
                "Leave out apns-expiration 0, and it waits until the device subscribes."
            )
        case .discardedPower:
            (
                "It was thrown away: the device saves power, and it was not to be stored.",
                "Leave out apns-expiration 0, or send it with apns-priority 10."
            )
        case .discardedBacklog:
            (
                "It was thrown away: the device was behind, and it was not to be stored.",
                "Leave out apns-expiration 0, and it waits for its turn."
            )
        case .discardedBudget:
            (
                "It was thrown away: the app has used up its background pushes, and it was not to be stored.",
                "Send fewer background pushes, or leave out apns-expiration 0."
            )
        case .discardedChannelDeleted: ("It was thrown away: its channel was deleted.", "")
        default: (state.words.prefix(1).uppercased() + state.words.dropFirst() + ".", "")
        }
    }

    /// The guide to a refused request, with the words about this one, or those about every one of the reason.
    package static func entry(_ reason: RefusalReason, explanation: String? = nil) -> Entry {
        let cause = sentence(explanation.flatMap { $0.isEmpty ? nil : $0 } ?? reason.explanation)
        let advice =
            switch reason.advice {
            case .giveUp: "Do not send it again unchanged."
            case .renewToken: "Make a new provider token, and send it again."
            case .retryLater: "Send it again later."
            }
        return ("Herald refused the request: \(reason.httpStatus) \(reason.rawValue).", "\(cause) \(advice)")
    }

    private static func sentence(_ text: String) -> String {
        let text = text.prefix(1).uppercased() + text.dropFirst()
        return text.hasSuffix(".") ? text : text + "."
    }
}

extension JournalState {
    /// Whether the notification reached the device.
    var isDelivery: Bool {
        switch self {
        case .delivered, .deliveredFromStorage, .deliveredUnacknowledged, .deliveredUnacknowledgedFromStorage: true
        default: false
        }
    }

    /// Whether a line only adds to the life of a notification, and may come after its end.
    var isRemark: Bool { self == .answerWithheldByDrill || self == .drillUnheeded }

    /// Whether nothing more happens to the notification.
    var isFinal: Bool {
        switch self {
        case .received, .storedDeviceOffline, .storedPower, .storedUnacknowledged, .storedBacklog, .storedBudget,
            .storedBeforeDelivery, .storedTokenMissing, .storedNotSubscribed, .storedForSubscribers,
            .answerWithheldByDrill, .drillUnheeded:
            false
        default: true
        }
    }
}

extension JournalEntry {
    private static let states = Dictionary(
        JournalState.allCases.map { ($0.words, $0) },
        uniquingKeysWith: { first, _ in first }
    )

    /// The state of the line; nil for one of another version of Herald.
    package var journalState: JournalState? {
        if status != nil { return .refusedByService }
        return JournalEntry.states[reason.map { "\(state) (\($0))" } ?? state]
    }
}

extension JournalLife.Words {
    /// The words about a line.
    package init(_ line: JournalEntry) {
        let entry: StateGuide.Entry =
            if line.status != nil, let reason = line.reason.flatMap(RefusalReason.init(rawValue:)) {
                StateGuide.entry(reason, explanation: line.explanation)
            } else {
                line.journalState.map { StateGuide.entry($0) } ?? (line.state, "")
            }
        self.init(time: line.time, words: entry.words, hint: entry.hint)
    }
}
