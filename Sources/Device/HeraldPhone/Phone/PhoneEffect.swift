import HeraldDevice
import HeraldModel

/// An effect that ``Phone`` decides, to be performed once the state is durable.
enum PhoneEffect: Hashable, Sendable {
    /// Writes the record to the display log, before the state.
    case record(DisplayRecord)
    /// Amends the record with that ``DisplayRecord/id``, before the state.
    case amend(String, DisplayAmendment)
    /// Registers an app at the service.
    case register(DeviceApp)
    /// Presents the device token that an app had before a restart; comes before `register`.
    case present(DeviceToken, for: Topic)
    case unregister(Topic, in: PushEnvironment?)
    case subscribe(DeviceChannel)
    case unsubscribe(DeviceChannel)
    case setEnabled(Bool, for: Topic)
    case setSaving(Bool)
    case setNetwork(Bool)
    /// Runs a program of the app's bundle. The end of the program is reported to the phone.
    case run(PhoneRun)
    /// Ends the app's programs.
    case endPrograms(Topic)
    /// Sends a message to an app on the local socket.
    case notifyApp(Topic, AppMessage)
    /// Deletes the app's bundle and container. The deletion is reported to the phone.
    case deleteFiles(Topic)
}

/// A later change to a display record.
enum DisplayAmendment: Hashable, Sendable {
    /// Another notification, with this `apns-id` or local identifier, replaced it.
    case replaced(by: String)
    case responded(DisplayRecord.Response)
    case ranInBackground(DisplayRecord.BackgroundOutcome)
}

/// A message from the device to an app on the local socket.
enum AppMessage: Hashable, Sendable {
    /// The user's first answer to the permission request.
    case permission(Topic, [NotificationKind])
    /// A later change of the permission.
    case settings(Topic, [NotificationKind])
    case token(Topic, String)
    case refused(Topic, String)
    case notification(AppNotification)
    /// The service has taken the subscription to a channel, or refuses it for a reason.
    case channel(DeviceChannel, refused: String?)
    case languages([String])
}

/// A notification for an app on the local socket.
struct AppNotification: Hashable, Sendable {
    var arrival: PhoneState.Arrival
    var cause: LocalApp.Cause
    var state: AppState
    var action: String?
    var text: String?
}
