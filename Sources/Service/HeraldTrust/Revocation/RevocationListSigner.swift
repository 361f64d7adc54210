import HeraldIdentity
import HeraldModel
import SwiftASN1
import X509

/// Encodes and signs revocation lists.
enum RevocationListSigner {
    /// Makes and signs a list of version 2, in DER.
    ///
    /// It is valid until the authority expires. Its only reader is the service beside it, which learns of a newer list
    /// at once, and an expired list would refuse every peer. The serial numbers are in lower-case hex. `number` is
    /// greater than those of all earlier lists, and `now` is the list's `thisUpdate`.
    /// - Throws: ``TrustError/Code/noSigningKey``, or an error of the library.
    static func sign(
        revoked: [String: WallTime],
        number: RevocationListNumber,
        now: WallTime,
        authority: CertificateAuthority
    ) throws -> [UInt8] {
        // The signature covers the name of its algorithm.
        let (_, algorithm) = try authority.sign([])
        var body = DER.Serializer()
        try body.appendConstructedNode(identifier: .sequence) { coder in
            try coder.serialize(1)
            try write(algorithm, into: &coder)
            try coder.serialize(authority.certificate.subject)
            try write(now, into: &coder)
            try write(authority.expires, into: &coder)
            // An empty list of entries is omitted (RFC 5280 §5.1.2.6).
            if !revoked.isEmpty {
                try coder.appendConstructedNode(identifier: .sequence) { coder in
                    for (serial, since) in revoked.sorted(by: { $0.key < $1.key }) {
                        try coder.appendConstructedNode(identifier: .sequence) { coder in
                            write(integer: Hex.bytes(serial) ?? [], into: &coder)
                            try write(since, into: &coder)
                        }
                    }
                }
            }
            try writeExtensions(number: number, authority: authority, into: &coder)
        }
        let (signature, _) = try authority.sign(body.serializedBytes)
        var list = DER.Serializer()
        try list.appendConstructedNode(identifier: .sequence) { coder in
            coder.serializeRawBytes(body.serializedBytes)
            try write(algorithm, into: &coder)
            try coder.serialize(ASN1BitString(bytes: signature.rawRepresentation[...]))
        }
        return list.serializedBytes
    }

    private static func writeExtensions(
        number: RevocationListNumber,
        authority: CertificateAuthority,
        into coder: inout DER.Serializer
    ) throws {
        var content = DER.Serializer()
        write(integer: number.bytes, into: &content)
        let extensions = [
            try AuthorityKeyIdentifier(keyIdentifier: authority.keyIdentifier).makeCertificateExtension(),
            Certificate.Extension(oid: [2, 5, 29, 20], critical: false, value: content.serializedBytes[...]),
        ]
        try coder.serialize(explicitlyTaggedWithTagNumber: 0, tagClass: .contextSpecific) { coder in
            try coder.serializeSequenceOf(extensions)
        }
    }

    private static func write(_ algorithm: Certificate.SignatureAlgorithm, into coder: inout DER.Serializer) throws {
        guard let name = SignatureAlgorithms.identifier(algorithm) else {
            throw TrustError(.unexpected, "the signature algorithm has no object identifier")
        }
        try coder.appendConstructedNode(identifier: .sequence) { coder in
            try coder.serialize(name)
            if SignatureAlgorithms.hasNullParameters(algorithm) { try coder.serialize(ASN1Null()) }
        }
    }

    /// Writes a non-negative number from its big-endian bytes.
    private static func write(integer bytes: [UInt8], into coder: inout DER.Serializer) {
        coder.appendPrimitiveNode(identifier: .integer) { content in
            let digits = SerialNumberText.normal(bytes[...])
            if digits.first.map({ $0 & 0x80 != 0 }) ?? true { content.append(0) }
            content += digits
        }
    }

    /// Writes a time as RFC 5280 §5.1.2.4 requires: two-digit years until 2049, four digits from 2050.
    private static func write(_ moment: WallTime, into coder: inout DER.Serializer) throws {
        let time = try GeneralizedTime(moment)
        guard (1950..<2050).contains(time.year) else { return try coder.serialize(time) }
        try coder.serialize(
            UTCTime(
                year: time.year,
                month: time.month,
                day: time.day,
                hours: time.hours,
                minutes: time.minutes,
                seconds: time.seconds
            )
        )
    }
}
