/// An error in a bundle.
public struct BundleError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The path of the file or folder.
    public let file: String
    /// The problem, on one line for people.
    public let message: String

    init(_ file: String, _ message: String) {
        self.file = file
        self.message = message
    }

    /// The file and the problem.
    public var description: String { "\(file): \(message)" }
}
