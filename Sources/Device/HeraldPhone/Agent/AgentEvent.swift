public import HeraldDevice

/// An event of a simulated device.
public enum AgentEvent: Sendable {
    /// An event of its connection.
    case connection(DeviceEvent)
    /// A notification arrived and is durable. It is acknowledged once the observer has returned.
    ///
    /// The record is nil while the app's service program may change it, and for a duplicate.
    case notification(ReceivedNotification, DisplayRecord?, isRepeated: Bool)
    /// A notification is shown, after its app's service program has run.
    case presented(DisplayRecord)
    /// A local notification was due, and is durable.
    case local(DisplayRecord)
    /// A file of the device cannot be read, and was set aside, or a program of an app failed; a sentence for the user.
    case fault(String)
    /// An app requests the user's permission.
    case question(PhoneSnapshot.App)
}
