public import HeraldModel

/// A device's line to the service: held for as long as ``run(_:)`` runs, whatever happens to the network.
///
/// What is asked for here may be asked at any time and from anywhere. It is said to the service at once where there is a
/// connection, else on the next one; what the service has not confirmed is said again on each. It is not kept over
/// restarts: who needs that keeps it, and asks again.
public protocol DeviceLine: Sendable {
    /// Stays connected until the task is cancelled, or the service refuses the device for good.
    /// - Parameter handle: Called with one event at a time. What it throws ends the run.
    /// - Throws: ``DeviceError/Code/refused``, `CancellationError`, or what `handle` throws.
    func run(_ handle: (DeviceEvent) async throws -> Void) async throws

    /// Registers an app, now and on each connect: ``DeviceEvent/token(_:for:)`` or ``DeviceEvent/appRefused(_:reason:)``
    /// follows.
    ///
    /// One that is being removed is removed first, so that it gets a new device token.
    func install(_ app: DeviceApp)

    /// Says which device token an app holds from an earlier run: it is presented with the app on each connect.
    ///
    /// Before the app is installed.
    func present(_ token: DeviceToken, for topic: Topic)

    /// Removes an app: its device token is dead for ever.
    ///
    /// ``DeviceEvent/removed(_:)`` follows once the service has confirmed it. What still comes for the app is acknowledged
    /// and not reported.
    /// - Parameters:
    ///   - topic: The app.
    ///   - environment: Where it is registered, if it was not installed on this line; nil for where the service's name
    ///     leads.
    func remove(_ topic: Topic, in environment: PushEnvironment?)

    /// Says whether the user wants an app's notifications: ``DeviceEvent/settingsTaken(_:)`` follows.
    ///
    /// Means nothing for an app that is not installed.
    func setEnabled(_ enabled: Bool, for topic: Topic)

    /// Says whether the device saves power, in which notifications of priority 5 and 1 wait.
    func setSaving(_ saving: Bool)

    /// Loses the network, or has it again: off cuts the connection without a word and stays away, on connects at once.
    func setNetwork(_ isOn: Bool)
}

extension DeviceLine {
    /// Removes an app that was installed on this line, or is registered where the service's name leads.
    ///
    /// ``DeviceEvent/removed(_:)`` follows once the service has confirmed it.
    public func remove(_ topic: Topic) {
        remove(topic, in: nil)
    }
}

/// An app on a device.
public struct DeviceApp: Hashable, Sendable {
    /// Its bundle identifier, with the suffix of its push type where that type has one.
    public let topic: Topic
    /// In which environment it is registered (`aps-environment`); nil for the one that the service's name leads to.
    public let environment: PushEnvironment?

    /// Names an app.
    public init(topic: Topic, environment: PushEnvironment? = nil) {
        self.topic = topic
        self.environment = environment
    }
}
