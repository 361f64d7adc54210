/// Limits of a simulated device; above a limit, the oldest entry is dropped.
public struct PhoneLimits: Hashable, Sendable {
    /// The most apps.
    ///
    /// Further ones are refused. (default: 200)
    public var apps = 200
    /// The most notifications on the screen. (default: 100)
    public var notifications = 100
    /// The most Live Activities on the screen. (default: 20)
    public var activities = 20
    /// The most subscriptions to channels, of all apps together; the service takes 500 of a device, with its apps.
    ///
    /// Further ones are refused. (default: 100)
    public var channels = 100
    /// The most programs that run or wait.
    ///
    /// Further ones do not run. (default: 128)
    public var runs = 128
    /// The most pending local notifications of an app.
    ///
    /// Further ones are refused, as on a phone. (default: 64)
    public var pendingNotifications = 64
    /// The most pending local notifications of all apps, so that the device's state remains small.
    ///
    /// Further ones are refused. (default: 1,024)
    public var allPendingNotifications = 1_024
    /// The most bytes of a local notification's payload, as of a remote one. (default: 4,096)
    public var payloadBytes = 4_096
    /// The most seconds by which the device's clock can be moved, in either direction. (default: ten years)
    public var clockSeconds = 315_576_000.0
    /// The most seconds by which a clock that is set back counts as corrected, not as moved. (default: 60)
    ///
    /// Time servers correct a clock by small steps; what was just shown must not be due again.
    public var clockCorrectionSeconds = 60.0
    /// The most responses of the user that are kept for an app on the local socket while it is away.
    ///
    /// Beyond that the oldest is dropped. (default: 16)
    public var unheardResponses = 16
    /// The largest state file, in bytes. (default: 64 MiB, which is also the most that is read)
    ///
    /// A change that would make it larger is refused; a notification is recorded and skipped.
    var stateBytes = AgentFolder.maximumStateBytes
    /// The most lines of the log. (default: 100)
    public var lines = 100
    /// The most sounds in a snapshot. (default: 10)
    public var sounds = 10
    /// The time after which a banner goes away by itself, in seconds of the device's clock. (default: 5, as on a phone)
    public var bannerSeconds = 5.0
    /// The time limit of a background run of an app on the local socket, in seconds. (default: 30)
    public var backgroundSeconds = 30.0

    /// Creates the default limits.
    public init() {}
}
