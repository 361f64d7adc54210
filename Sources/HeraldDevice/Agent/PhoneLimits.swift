/// How much a device keeps; the oldest goes when there is too much.
public struct PhoneLimits: Hashable, Sendable {
    /// The most apps; a further one is refused. (default: 200)
    public var apps = 200
    /// The most notifications that are shown. (default: 100)
    public var notifications = 100
    /// The most Live Activities that are shown. (default: 20)
    public var activities = 20
    /// The most programs that run or wait to; what exceeds it does not run. (default: 128)
    public var runs = 128
    /// The most lines of the log. (default: 100)
    public var lines = 100
    /// The most sounds that a view may still play. (default: 10)
    public var sounds = 10
    /// For how long an app on the local socket may take to say that it is done, in seconds. (default: 30)
    public var backgroundSeconds = 30.0

    /// The defaults.
    public init() {}
}
