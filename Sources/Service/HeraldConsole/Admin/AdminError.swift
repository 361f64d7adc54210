/// Failure of an operator's request, with its remedy.
package struct AdminError: Error, Hashable {
    /// Kind of failure.
    package enum Code: Int, Hashable, Sendable {
        /// The request cannot be understood.
        case badRequest = 400
        /// The bearer token is missing or wrong.
        case unauthorized = 401
        /// The caller's role does not allow it.
        case forbidden = 403
        /// The object does not exist.
        case notFound = 404
        /// The service's state does not allow it.
        case conflict = 409
        /// The caller has tried too often.
        case tooMany = 429
        /// Internal error, for example of a disk.
        case failed = 500

        /// HTTP status of the answer.
        package var httpStatus: Int { rawValue }
    }

    package let code: Code
    package let message: String
    /// Seconds after which a try may succeed, for `retry-after`.
    package let retryAfter: Int?

    package init(_ code: Code, _ message: String, retryAfter: Int? = nil) {
        self.code = code
        self.message = message
        self.retryAfter = retryAfter
    }
}

extension AdminError: CustomStringConvertible {
    package var description: String { message }
}
