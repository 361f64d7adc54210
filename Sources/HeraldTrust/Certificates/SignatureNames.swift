import SwiftASN1
import X509

/// Which signature algorithms are read and made, by their object identifiers (RFC 5758, RFC 8017, RFC 8410).
///
/// SHA-1 is not among them.
enum SignatureNames {
    private static let table: [(ASN1ObjectIdentifier, Certificate.SignatureAlgorithm)] = [
        ([1, 2, 840, 10045, 4, 3, 2], .ecdsaWithSHA256),
        ([1, 2, 840, 10045, 4, 3, 3], .ecdsaWithSHA384),
        ([1, 2, 840, 10045, 4, 3, 4], .ecdsaWithSHA512),
        ([1, 2, 840, 113549, 1, 1, 11], .sha256WithRSAEncryption),
        ([1, 2, 840, 113549, 1, 1, 12], .sha384WithRSAEncryption),
        ([1, 2, 840, 113549, 1, 1, 13], .sha512WithRSAEncryption),
        ([1, 3, 101, 112], .ed25519),
    ]

    /// The most common of those that a key can make.
    static func best(of supported: [Certificate.SignatureAlgorithm]) -> Certificate.SignatureAlgorithm? {
        table.first { supported.contains($0.1) }?.1
    }

    static func algorithm(_ identifier: ASN1ObjectIdentifier) -> Certificate.SignatureAlgorithm? {
        table.first { $0.0 == identifier }?.1
    }

    static func identifier(_ algorithm: Certificate.SignatureAlgorithm) -> ASN1ObjectIdentifier? {
        table.first { $0.1 == algorithm }?.0
    }

    /// Whether the algorithm's parameters are written as NULL (RSA) rather than left out.
    static func hasNullParameters(_ algorithm: Certificate.SignatureAlgorithm) -> Bool {
        algorithm == .sha256WithRSAEncryption || algorithm == .sha384WithRSAEncryption
            || algorithm == .sha512WithRSAEncryption
    }
}
