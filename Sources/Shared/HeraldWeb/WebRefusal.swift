/// An error answer: status and message.
package struct WebRefusal: Error, Hashable, Sendable {
    /// Status, 400 to 599.
    package let status: Int
    /// The error and its remedy, on one line.
    package let message: String
    /// Allowed methods, for the field `allow` of status 405.
    package var allow: [String] = []
    /// Seconds for the field `retry-after`; nil for none.
    package let retryAfter: Int?

    package init(_ status: Int, _ message: String, retryAfter: Int? = nil) {
        self.status = status
        self.message = message
        self.retryAfter = retryAfter
    }
}

/// Body of every error answer.
package struct WebFailure: Codable, Hashable, Sendable {
    package let error: String
}
