/// Why the queue's database did not do what it was asked.
package struct RelayStoreError: Error, Hashable, Sendable {
    /// What kind of failure it is.
    package enum Code: Hashable, Sendable {
        /// The address is none, or the database cannot be used as it is: the start fails.
        case unusable
        /// It is locked, full, or cannot be reached: worth another try.
        case unavailable
        /// A statement failed in a way that a second try does not mend.
        case failed
    }

    package let code: Code
    /// What is wrong, in one line, without a row's content and without a password.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }
}

extension RelayStoreError: CustomStringConvertible {
    package var description: String { message }
}
