/// How much the programs of apps may take.
public struct ProgramLimits: Hashable, Sendable {
    /// For how long a program may run. (default: 30 s)
    public var time: Duration = .seconds(30)
    /// How long after SIGTERM comes SIGKILL. (default: 5 s)
    public var grace: Duration = .seconds(5)
    /// The most bytes of output that are read; a program that says more has failed. (default: 64 KiB)
    public var outputBytes = 64 << 10
    /// How many run at once; the others wait. (default: 4)
    public var atOnce = 4

    /// The defaults.
    public init() {}
}
