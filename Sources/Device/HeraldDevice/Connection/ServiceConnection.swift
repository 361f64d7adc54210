public import HeraldModel

/// A device's connection to the service, kept open while ``run(_:)`` runs.
///
/// Requests may be made at any time and from any task. They are sent at once if there is a connection, else on the next
/// one. Unconfirmed requests are sent again on each connection, but not kept over a restart.
public protocol ServiceConnection: Sendable {
    /// Stays connected until the task is cancelled, or the service refuses the device permanently.
    /// - Parameter handle: Called with one event at a time. An error that it throws ends the run.
    /// - Throws: ``DeviceError/Code/refused``, ``DeviceError/Code/dismissed``, `CancellationError`, or the error of `handle`.
    func run(_ handle: (DeviceEvent) async throws -> Void) async throws

    /// Registers an app, now and on each connect: ``DeviceEvent/token(_:for:)`` or ``DeviceEvent/appRefused(_:reason:)``
    /// follows.
    ///
    /// An app that is being removed is removed first, so that it gets a new device token.
    func install(_ app: DeviceApp)

    /// Sets the device token that an app holds from an earlier run. It is presented with the app on each connect.
    ///
    /// Call it before the app is installed.
    func present(_ token: DeviceToken, for topic: Topic)

    /// Removes an app. Its device token never works again.
    ///
    /// ``DeviceEvent/removed(_:)`` follows once the service has confirmed it. Until then, notifications for the app are
    /// acknowledged and not reported.
    /// - Parameters:
    ///   - topic: The app.
    ///   - environment: The environment of its registration, if it was not installed on this connection; nil for the one
    ///     that the service's name selects.
    func remove(_ topic: Topic, in environment: PushEnvironment?)

    /// Sets whether the user wants an app's notifications. ``DeviceEvent/settingsTaken(_:isEnabled:)`` follows.
    ///
    /// Has no effect for an app that is not installed.
    func setEnabled(_ enabled: Bool, for topic: Topic)

    /// Subscribes to a channel, now and on each connect: ``DeviceEvent/subscribed(_:)`` or
    /// ``DeviceEvent/channelRefused(_:reason:)`` follows, and the channel's broadcasts as notifications.
    func subscribe(to channel: DeviceChannel)

    /// Ends the subscription to a channel. Its broadcasts are not reported any more.
    func unsubscribe(from channel: DeviceChannel)

    /// Sets whether the device saves power. Notifications of priority 5 and 1 wait then.
    func setSaving(_ saving: Bool)

    /// Switches the network off or on. Off cuts the connection without a DISCONNECT; on reconnects at once.
    func setNetwork(_ isOn: Bool)
}

extension ServiceConnection {
    /// Removes an app that was installed on this connection, or is registered in the environment of the service's name.
    ///
    /// ``DeviceEvent/removed(_:)`` follows once the service has confirmed it.
    public func remove(_ topic: Topic) {
        remove(topic, in: nil)
    }
}

/// An app on a device.
public struct DeviceApp: Hashable, Sendable {
    /// Its bundle identifier, with the suffix of its push type if that type has one.
    public let topic: Topic
    /// The environment of its registration (`aps-environment`); nil for the one that the service's name selects.
    public let environment: PushEnvironment?

    /// Creates an app.
    public init(topic: Topic, environment: PushEnvironment? = nil) {
        self.topic = topic
        self.environment = environment
    }
}
