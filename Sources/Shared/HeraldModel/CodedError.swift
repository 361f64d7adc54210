/// An error that is told apart by its code, with a message for people.
public protocol CodedError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of failure.
    associatedtype Code: Hashable, Sendable
    /// The kind of failure; errors are equal if their codes are.
    var code: Code { get }
    /// The problem, on one line.
    var message: String { get }
}

extension CodedError {
    /// The message.
    public var description: String { message }

    /// Compares codes.
    public static func == (left: Self, right: Self) -> Bool { left.code == right.code }

    /// Feeds the code to a hasher.
    public func hash(into hasher: inout Hasher) { hasher.combine(code) }
}
