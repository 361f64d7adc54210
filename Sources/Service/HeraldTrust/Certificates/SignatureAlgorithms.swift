import SwiftASN1
import X509

/// The supported signature algorithms and their object identifiers (RFC 5758, RFC 8017, RFC 8410), without SHA-1.
enum SignatureAlgorithms {
    private static let table: [(ASN1ObjectIdentifier, Certificate.SignatureAlgorithm)] = [
        ([1, 2, 840, 10045, 4, 3, 2], .ecdsaWithSHA256),
        ([1, 2, 840, 10045, 4, 3, 3], .ecdsaWithSHA384),
        ([1, 2, 840, 10045, 4, 3, 4], .ecdsaWithSHA512),
        ([1, 2, 840, 113549, 1, 1, 11], .sha256WithRSAEncryption),
        ([1, 2, 840, 113549, 1, 1, 12], .sha384WithRSAEncryption),
        ([1, 2, 840, 113549, 1, 1, 13], .sha512WithRSAEncryption),
        ([1, 3, 101, 112], .ed25519),
    ]

    /// The most common algorithm that a key supports.
    static func best(of supported: [Certificate.SignatureAlgorithm]) -> Certificate.SignatureAlgorithm? {
        table.first { supported.contains($0.1) }?.1
    }

    static func algorithm(_ identifier: ASN1ObjectIdentifier) -> Certificate.SignatureAlgorithm? {
        table.first { $0.0 == identifier }?.1
    }

    static func identifier(_ algorithm: Certificate.SignatureAlgorithm) -> ASN1ObjectIdentifier? {
        table.first { $0.1 == algorithm }?.0
    }

    /// Whether the algorithm's parameters are encoded as NULL (RSA) instead of omitted.
    static func hasNullParameters(_ algorithm: Certificate.SignatureAlgorithm) -> Bool {
        algorithm == .sha256WithRSAEncryption || algorithm == .sha384WithRSAEncryption
            || algorithm == .sha512WithRSAEncryption
    }
}
