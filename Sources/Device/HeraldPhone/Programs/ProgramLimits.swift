/// Limits of the programs of apps.
public struct ProgramLimits: Hashable, Sendable {
    /// The time limit of a run. (default: 30 s)
    public var time: Duration = .seconds(30)
    /// The time from SIGTERM to SIGKILL. (default: 5 s)
    public var grace: Duration = .seconds(5)
    /// The most bytes of output.
    ///
    /// A program with more output has failed. (default: 64 KiB)
    public var outputBytes = 64 << 10
    /// The most programs at once.
    ///
    /// Others wait. (default: 4)
    public var atOnce = 4

    /// Creates the default limits.
    public init() {}
}
