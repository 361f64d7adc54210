package import HeraldModel

/// The reason for refusing a peer's certificate whose chain TLS accepted.
package struct PeerRefusal: CodedError {
    /// The kind of refusal.
    ///
    /// Refusals are equal when their codes are.
    package enum Code: String, Hashable, Sendable, CaseIterable {
        /// Not the DER of a readable certificate.
        case malformed
        /// Signed by another authority than the listener's.
        case wrongAuthority
        case notYetValid
        case expired
        /// The certificate of an authority.
        case isAuthority
        /// Not for TLS clients (no extended key usage clientAuth, or no digital signatures).
        case wrongPurpose
        /// A key that is too short.
        case weakKey
        /// On the revocation list.
        case revoked
        /// Without a current revocation list, revocation is unknown.
        case revocationUnknown
        /// No identity, several, or an invalid one.
        case noIdentity
    }

    package let code: Code
    /// The problem in one line, without secrets and without anything that the peer chose.
    package let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The answer to a provider.
    ///
    /// Apple's servers refuse most of these during the handshake. Herald sends this reason in GOAWAY.
    package var refusalReason: RefusalReason {
        code == .revocationUnknown ? .serviceUnavailable : .badCertificate
    }
}
