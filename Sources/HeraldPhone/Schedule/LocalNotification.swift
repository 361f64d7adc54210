public import HeraldModel

/// A notification that an app schedules on its own device; no provider and no network take part.
public struct LocalNotification: Hashable, Sendable {
    /// The condition under which a local notification is due.
    public enum Trigger: Hashable, Sendable {
        /// Due once, when this time has passed on the device's clock.
        case after(Duration)
        /// Due once, at a moment.
        case at(CalendarMoment)
        /// Due again and again.
        case every(CalendarRule)
    }

    /// The identifier, chosen by the app, of 1 to 64 bytes.
    ///
    /// A notification with the same identifier replaces the pending one, and, when it is shown, the one on the screen.
    public var id: String
    /// The payload: the `aps` dictionary of a remote notification, and the app's own members; at most 4,096 bytes.
    public var payload: PayloadValue
    /// The condition under which it is due.
    public var trigger: Trigger

    /// Creates a notification.
    public init(id: String, payload: PayloadValue, trigger: Trigger) {
        self.id = id
        self.payload = payload
        self.trigger = trigger
    }
}

/// A local notification that is not due yet.
public struct PendingNotification: Hashable, Sendable {
    /// The app that scheduled it.
    public var topic: Topic
    /// The notification.
    public var notification: LocalNotification
    /// The time at which it is due next, in UNIX seconds of the device's clock.
    public var next: Double
}
