/// Why something of the trust folder cannot be read, made or changed; never a peer's mistake, which is a value.
package struct TrustError: Error, Sendable {
    /// The kind of failure.
    ///
    /// Errors are equal when their codes are.
    package struct Code: Hashable, Sendable {
        private enum Kind: Hashable, Sendable {
            case folderMissing
            case exposed
            case foreignOwner
            case damaged
            case missing
            case unreadable
            case unwritable
            case invalidArgument
            case unknownID
            case alreadyRevoked
            case noSigningKey
            case badRequest
            case notInvited
            case tooMany
            case untrustedList
            case unexpected
        }

        private let kind: Kind

        /// There is no trust folder yet.
        package static let folderMissing = Code(kind: .folderMissing)
        /// A secret may be read by others than its owner.
        package static let exposed = Code(kind: .exposed)
        /// A file belongs to somebody else.
        package static let foreignOwner = Code(kind: .foreignOwner)
        /// A file does not hold what it should.
        package static let damaged = Code(kind: .damaged)
        /// A file is not there.
        package static let missing = Code(kind: .missing)
        /// The system refuses to read a file.
        package static let unreadable = Code(kind: .unreadable)
        /// The system refuses to write a file.
        package static let unwritable = Code(kind: .unwritable)
        /// A name, team, topic or identifier is not one.
        package static let invalidArgument = Code(kind: .invalidArgument)
        /// No credential or device has this identifier.
        package static let unknownID = Code(kind: .unknownID)
        /// It is revoked already.
        package static let alreadyRevoked = Code(kind: .alreadyRevoked)
        /// The authority is known by its certificate alone, so nothing can be issued by it here.
        package static let noSigningKey = Code(kind: .noSigningKey)
        /// A certificate signing request cannot be accepted.
        package static let badRequest = Code(kind: .badRequest)
        /// A code that lets nobody in, or no longer.
        package static let notInvited = Code(kind: .notInvited)
        /// There are as many of a thing as there may be.
        package static let tooMany = Code(kind: .tooMany)
        /// A revocation list is not one that may replace the present one.
        package static let untrustedList = Code(kind: .untrustedList)
        /// A library failed where it had no reason to.
        package static let unexpected = Code(kind: .unexpected)
    }

    package let code: Code
    /// What is wrong and how to mend it, in one line for the operator; holds no secret.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }
}

extension TrustError: Hashable {
    package static func == (left: TrustError, right: TrustError) -> Bool {
        left.code == right.code
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(code)
    }
}

extension TrustError: CustomStringConvertible {
    package var description: String { message }
}
