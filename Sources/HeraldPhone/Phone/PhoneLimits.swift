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
    /// The most programs that run or wait.
    ///
    /// Further ones do not run. (default: 128)
    public var runs = 128
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
