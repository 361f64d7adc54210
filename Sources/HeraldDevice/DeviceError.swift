/// Why a device could not begin, or why a connection ended.
public struct DeviceError: Error, Sendable, CustomStringConvertible {
    /// The kinds of error.
    public struct Code: Hashable, Sendable {
        private enum Name: Hashable, Sendable {
            case badIdentity
            case refused
            case lost
        }

        private let name: Name

        /// The identity or the authority cannot be read: trying again does not help.
        public static let badIdentity = Code(name: .badIdentity)
        /// The service refused the connection; it may take it later.
        public static let refused = Code(name: .refused)
        /// The connection ended.
        public static let lost = Code(name: .lost)
    }

    /// What kind of error it is.
    public let code: Code
    /// What happened, on one line.
    public let message: String

    /// Makes an error.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The message.
    public var description: String { message }
}
