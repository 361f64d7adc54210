/// How much of a bundle is read; what exceeds it is an error, not a slow device.
public struct BundleLimits: Hashable, Sendable {
    /// The longest file of texts, in bytes. (default: 8 MiB)
    public var fileBytes = 8 << 20
    /// The most files and folders that are looked at. (default: 20,000)
    public var entries = 20_000
    /// How many folders deep the folders of languages are looked for, where they are not at the top. (default: 6)
    public var depth = 6
    /// The most objects of one property list. (default: 200,000)
    public var objects = 200_000
    /// The most bytes of a bundle that is installed. (default: 256 MiB)
    public var totalBytes = 256 << 20

    /// The defaults.
    public init() {}
}
