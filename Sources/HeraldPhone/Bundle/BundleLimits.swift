/// Limits on reading a bundle; above a limit, reading fails.
public struct BundleLimits: Hashable, Sendable {
    /// The largest text file, in bytes. (default: 8 MiB)
    public var fileBytes = 8 << 20
    /// The most files and folders. (default: 20,000)
    public var entries = 20_000
    /// The depth of the search in a project. (default: 6)
    public var depth = 6
    /// The most objects in a property list. (default: 200,000)
    public var objects = 200_000
    /// The largest bundle to install, in bytes. (default: 256 MiB)
    public var totalBytes = 256 << 20

    /// Creates the default limits.
    public init() {}
}
