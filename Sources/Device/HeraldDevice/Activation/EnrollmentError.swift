public import HeraldModel

/// A failure of a device's activation or renewal.
public struct EnrollmentError: CodedError {
    /// The kind of failure.
    public enum Code: Hashable, Sendable {
        /// The invitation code is mistyped.
        case mistyped
        /// The service's address is malformed.
        case badAddress
        /// The server is not the service that the code or the folder names; nothing was sent to it.
        case untrusted
        /// The service refused the request.
        case refused
        /// The service does not answer.
        case unreachable
        /// The service's answer cannot be used.
        case badAnswer
        /// The device's folder is missing, damaged, accessible to others, or already has an identity.
        case folder
    }

    /// The kind of failure; errors are equal if their codes are.
    public let code: Code
    /// The problem and its solution, on one line for people; it contains no secret.
    public let message: String
    /// The service's Retry-After.
    public let retryAfter: Duration?
    /// Whether the same request may succeed soon; the service may have answered it, and the answer was lost.
    let mayPass: Bool

    init(_ code: Code, _ message: String, retryAfter: Duration? = nil, mayPass: Bool = false) {
        self.mayPass = mayPass
        self.code = code
        self.message = message
        self.retryAfter = retryAfter
    }
}
