import HeraldModel

/// An error of reading, issuing or changing certificates and keys: in the trust folder, or in a device's.
///
/// A peer's mistake is a `PeerRefusal` or a `RefusalReason` instead.
package struct TrustError: CodedError {
    /// The kind of failure.
    ///
    /// Errors are equal when their codes are.
    package enum Code: Hashable, Sendable {
        /// There is no trust folder yet.
        case folderMissing
        /// Other users can read a secret.
        case exposed
        /// A file belongs to another user.
        case foreignOwner
        /// A file's content is invalid.
        case damaged
        /// A file is missing.
        case missing
        /// The system refuses to read a file.
        case unreadable
        /// The system refuses to write a file.
        case unwritable
        /// A name, team, topic or identifier is invalid.
        case invalidArgument
        /// No credential or device has this identifier.
        case unknownID
        /// The credential or device is revoked already.
        case alreadyRevoked
        /// The authority's key is kept elsewhere, so it cannot issue anything here.
        case noSigningKey
        /// A certificate signing request cannot be accepted.
        case badRequest
        /// An invitation code is unknown, used, withdrawn or expired.
        case notInvited
        /// A limit is reached.
        case tooMany
        /// A revocation list is invalid or older than the present one.
        case untrustedList
        /// The cluster, which has to decide, does not answer.
        case unavailable
        /// A library failed unexpectedly.
        case unexpected
    }

    /// The remedy for a lost or damaged file of the trust folder that only a backup has.
    package static let copyFromBackup = "stop the service, and copy the file from a backup (docs/operations/backup.md)"

    package let code: Code
    /// The problem and its remedy, in one line for the operator, without secrets.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// Whether a file was read and its content refused: reading it again would not help.
    package var isAboutContent: Bool {
        switch code {
        case .unreadable, .exposed, .foreignOwner, .missing: false
        default: true
        }
    }
}
