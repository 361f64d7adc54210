/// Failure of the queue's database.
package struct RelayStoreError: Error, Hashable, Sendable {
    /// Kind of failure.
    package enum Code: Hashable, Sendable {
        /// The address is invalid, or the database is unusable: the start fails.
        case unusable
        /// Locked, full or unreachable: worth a retry.
        case unavailable
        /// A retry does not help.
        case failed
    }

    package let code: Code
    /// Description on one line, without a row's content and without a password.
    package let message: String
    /// Whether the relay's user lacks a right in the database.
    package let isDenied: Bool
    /// Whether another connection may do better than this one, for example after a failover.
    let endsConnection: Bool

    package init(_ code: Code, _ message: String, isDenied: Bool = false, endsConnection: Bool = false) {
        self.code = code
        self.message = message
        self.isDenied = isDenied
        self.endsConnection = endsConnection
    }
}

extension RelayStoreError: CustomStringConvertible {
    package var description: String { message }
}
