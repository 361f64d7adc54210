package import X509

/// A certificate as it is handed out.
package struct IssuedCertificate<Record: Sendable>: Sendable {
    package let record: Record
    /// The certificate alone.
    package let certificate: Certificate
    /// Certificate, chain, and private key, in that order; without a key if a request was signed.
    package let pem: String
}

/// A provider key as it is handed out, once.
package struct IssuedKey: Sendable {
    package let credential: Credential
    /// PKCS#8 in PEM; a secret that the service does not keep.
    package let pem: String

    /// The name that clients of APNs expect: `AuthKey_<key id>.p8`.
    package var fileName: String { "AuthKey_\(credential.id).p8" }
}
