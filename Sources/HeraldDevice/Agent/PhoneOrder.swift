package import HeraldModel

/// What is to be done because of something that ``Phone`` decided; first of all its state is made durable.
enum PhoneOrder: Hashable, Sendable {
    /// Put the record where it is found; before the state.
    case record(SawRecord)
    /// Add to the record of that `apns-id`; before the state.
    case amend(String, SawAmendment)
    /// Tell the service.
    case register(DeviceApp)
    /// The device token that an app had before a restart; before it is registered.
    case present(DeviceToken, for: Topic)
    case unregister(Topic, in: PushEnvironment?)
    case setEnabled(Bool, for: Topic)
    case setSaving(Bool)
    case setNetwork(Bool)
    /// Run a program of the app's bundle, and report its end.
    case run(PhoneRun)
    /// End the app's programs.
    case endPrograms(Topic)
    /// Tell an app that is on the local socket.
    case tell(Topic, AppNews)
    /// Delete the app's bundle and container, and report that they are gone.
    case deleteFiles(Topic)
}

/// What became of a notification after it was shown.
enum SawAmendment: Hashable, Sendable {
    /// The `apns-id` of the one that took its place.
    case replaced(by: String)
    case answered(SawRecord.Answer)
    case ranInBackground(SawRecord.BackgroundOutcome)
}

/// What an app hears from the device.
package enum AppNews: Hashable, Sendable {
    /// Why an app gets a notification.
    package enum Cause: String, Codable, Hashable, Sendable {
        /// It is in the foreground.
        case foreground
        /// The user opened it by the notification.
        case opened
        /// The user pressed a button of the notification's category.
        case action
        /// It is woken, and has to say that it is done.
        case background
    }

    /// The user said what its notifications may do.
    case permission(Topic, [NotificationKind])
    /// They changed their mind.
    case settings(Topic, [NotificationKind])
    case token(Topic, String)
    case refused(Topic, String)
    case notification(IncomingForApp)
    case languages([String])
}

/// A notification as an app gets it.
package struct IncomingForApp: Hashable, Sendable {
    package var topic: Topic
    package var apnsID: String?
    package var payload: [UInt8]
    package var cause: AppNews.Cause
    package var state: AppState
    package var action: String?
    package var text: String?
}
