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
    /// The most notification categories in a file, and of an app that registers them. (default: 100)
    public var categories = 100
    /// The most actions of a category. (default: 10)
    ///
    /// A notification shows ``NotificationCategory/maximumActions`` of them.
    public var actions = 10
    /// The longest name of a category, and identifier and title of an action, in bytes of UTF-8. (default: 256)
    ///
    /// Each notification on the screen, and each display record, has the texts of its actions.
    public var actionTextBytes = 256

    /// Creates the default limits.
    public init() {}
}
