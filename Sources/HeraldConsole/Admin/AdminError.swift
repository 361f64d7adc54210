/// Why an operator's request was not done, in words that tell what to do.
package struct AdminError: Error, Hashable {
    /// What kind of failure it is; each has its HTTP status.
    package struct Code: Hashable, Sendable {
        /// The status of the answer.
        package let httpStatus: Int

        /// The request cannot be understood.
        package static let badRequest = Code(httpStatus: 400)
        /// The bearer token is missing or wrong.
        package static let unauthorized = Code(httpStatus: 401)
        /// There is no such thing.
        package static let notFound = Code(httpStatus: 404)
        /// The service's state does not allow it.
        package static let conflict = Code(httpStatus: 409)
        /// The body is longer than any request's.
        package static let tooLong = Code(httpStatus: 413)
        /// Something broke: a store, a disk.
        package static let failed = Code(httpStatus: 500)

        private init(httpStatus: Int) {
            self.httpStatus = httpStatus
        }
    }

    package let code: Code
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }
}

extension AdminError: CustomStringConvertible {
    package var description: String { message }
}
