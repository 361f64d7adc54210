package import HeraldModel

/// Why a peer's certificate is not accepted, though TLS took its chain.
package struct PeerRefusal: Error, Sendable {
    /// The kind of refusal.
    ///
    /// Refusals are equal when their codes are.
    package enum Code: String, Hashable, Sendable, CaseIterable {
        /// Not the DER of a certificate that we can read.
        case malformed
        /// Signed by another authority than this door's.
        case wrongAuthority
        /// Its time has not come.
        case notYetValid
        /// Its time is over.
        case expired
        /// An authority's own certificate.
        case isAuthority
        /// Not for TLS clients (no extended key usage clientAuth, or no digital signatures).
        case wrongPurpose
        /// A key too short to be relied on.
        case weakKey
        /// On the revocation list.
        case revoked
        /// There is no current revocation list, so nothing is known.
        case revocationUnknown
        /// It names no peer, more than one, or one that cannot be.
        case noIdentity
    }

    package let code: Code
    /// What is wrong, in one line; names no secret, and nothing that the peer chose.
    package let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// What a provider is told.
    ///
    /// Apple's servers refuse most of these during the handshake; where the connection stands already, this is the
    /// reason in GOAWAY.
    package var rejection: Rejection {
        code == .revocationUnknown ? .serviceUnavailable : .badCertificate
    }
}

extension PeerRefusal: Hashable {
    package static func == (left: PeerRefusal, right: PeerRefusal) -> Bool {
        left.code == right.code
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(code)
    }
}
