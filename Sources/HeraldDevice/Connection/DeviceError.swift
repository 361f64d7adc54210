/// Why a device's client gives up, or could not begin.
public struct DeviceError: Error, Hashable, Sendable {
    /// What kind of failure it is.
    public struct Code: Hashable, Sendable {
        private enum Kind: Hashable, Sendable {
            case badIdentity
            case badAuthority
            case refused
            case unreachable
            case busy
            case notPossible
            case badFolder
            case folderInUse
        }

        private let kind: Kind

        /// The identity's file does not hold a device's certificate with its private key.
        public static let badIdentity = Code(kind: .badIdentity)
        /// The authority's certificate cannot be read.
        public static let badAuthority = Code(kind: .badAuthority)
        /// The service does not let this device in, and will not if it tries again.
        public static let refused = Code(kind: .refused)
        /// There was no connection, or it ended; a client that runs connects again by itself.
        public static let unreachable = Code(kind: .unreachable)
        /// The client runs already.
        public static let busy = Code(kind: .busy)
        /// What was asked of the device cannot be done: there is no such app or notification, or it makes no sense now.
        public static let notPossible = Code(kind: .notPossible)
        /// The device's folder cannot be used, or a file in it cannot be read or written.
        public static let badFolder = Code(kind: .badFolder)
        /// Another agent works on the device's folder.
        public static let folderInUse = Code(kind: .folderInUse)
    }

    /// What kind of failure it is; equality of errors is equality of codes.
    public let code: Code
    /// What is wrong, in one line for people.
    public let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// Compares codes.
    public static func == (left: DeviceError, right: DeviceError) -> Bool {
        left.code == right.code
    }

    /// Feeds the code to a hasher.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(code)
    }
}

extension DeviceError: CustomStringConvertible {
    /// The message.
    public var description: String { message }
}
