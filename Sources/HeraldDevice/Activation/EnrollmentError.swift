/// Why a device did not get its certificate, or cannot keep it.
public struct EnrollmentError: Error, Hashable, Sendable {
    /// What kind of failure it is.
    public struct Code: Hashable, Sendable {
        private enum Kind: Hashable, Sendable {
            case mistyped
            case badAddress
            case untrusted
            case refused
            case unreachable
            case badAnswer
            case folder
        }

        private let kind: Kind

        /// The invitation code is mistyped.
        public static let mistyped = Code(kind: .mistyped)
        /// The service's address is none.
        public static let badAddress = Code(kind: .badAddress)
        /// Who answers is not the service that the code, or the folder, names.
        ///
        /// It was told nothing.
        public static let untrusted = Code(kind: .untrusted)
        /// The service understood and said no.
        public static let refused = Code(kind: .refused)
        /// The service does not answer.
        public static let unreachable = Code(kind: .unreachable)
        /// The service answered what cannot be used.
        public static let badAnswer = Code(kind: .badAnswer)
        /// The device's folder is missing, damaged, open to others, or has an identity already.
        public static let folder = Code(kind: .folder)
    }

    /// What kind of failure it is; equality of errors is equality of codes.
    public let code: Code
    /// What is wrong and how to mend it, in one line for people; holds no secret.
    public let message: String
    /// How long the service asks to be left alone.
    public let retryAfter: Duration?

    init(_ code: Code, _ message: String, retryAfter: Duration? = nil) {
        self.code = code
        self.message = message
        self.retryAfter = retryAfter
    }

    /// Compares codes.
    public static func == (left: EnrollmentError, right: EnrollmentError) -> Bool {
        left.code == right.code
    }

    /// Feeds the code to a hasher.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(code)
    }
}

extension EnrollmentError: CustomStringConvertible {
    /// The message.
    public var description: String { message }
}
