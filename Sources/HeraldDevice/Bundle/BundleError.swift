/// Why a bundle cannot be read.
public struct BundleError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The file or folder, as a path.
    public let file: String
    /// What is wrong with it, in one line for people.
    public let message: String

    init(_ file: String, _ message: String) {
        self.file = file
        self.message = message
    }

    /// The file and what is wrong with it.
    public var description: String { "\(file): \(message)" }
}
