/// What happens to a device, for whoever runs it.
public enum AgentEvent: Sendable {
    /// Something about its connection.
    case connection(DeviceEvent)
    /// A notification came, and is durable; it is acknowledged once the observer has returned.
    ///
    /// The record is nil while the app's service program may still change it, and for one that came before.
    case notification(ReceivedNotification, SawRecord?, isRepeated: Bool)
    /// A notification that its app's service program was given is shown.
    case presented(SawRecord)
    /// An app waits for the user's permission.
    case question(PhoneSnapshot.App)
}
