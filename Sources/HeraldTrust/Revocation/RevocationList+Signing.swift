import HeraldModel
import SwiftASN1
import X509

extension RevocationList {
    /// Makes and signs a list of version 2.
    ///
    /// It holds until the authority itself ends: it lies beside its only reader, which is told of a newer one at once,
    /// and one that lapsed in between would lock every peer out.
    /// - Parameters:
    ///   - revoked: Serial numbers in lower-case hex, and since when each is revoked.
    ///   - number: Greater than that of every list before.
    ///   - now: Becomes `thisUpdate`.
    ///   - authority: Signs it.
    /// - Returns: The list's DER.
    /// - Throws: ``TrustError/Code/noSigningKey``, or what the library throws.
    static func sign(
        revoked: [String: WallTime],
        number: RevocationListNumber,
        now: WallTime,
        authority: CertificateAuthority
    ) throws -> [UInt8] {
        // The name of the algorithm is part of what is signed.
        let (_, algorithm) = try authority.sign([])
        var body = DER.Serializer()
        try body.appendConstructedNode(identifier: .sequence) { coder in
            try coder.serialize(1)
            try write(algorithm, into: &coder)
            try coder.serialize(authority.certificate.subject)
            try write(now, into: &coder)
            try write(authority.expires, into: &coder)
            // An empty list of entries is left out (RFC 5280 §5.1.2.6).
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
        guard let name = SignatureNames.identifier(algorithm) else {
            throw TrustError(.unexpected, "a signature was made with an algorithm that has no name")
        }
        try coder.appendConstructedNode(identifier: .sequence) { coder in
            try coder.serialize(name)
            if SignatureNames.hasNullParameters(algorithm) { try coder.serialize(ASN1Null()) }
        }
    }

    /// Writes a number that is not negative from its big-endian bytes.
    private static func write(integer bytes: [UInt8], into coder: inout DER.Serializer) {
        coder.appendPrimitiveNode(identifier: .integer) { content in
            let digits = SerialText.normal(bytes[...])
            if digits.first.map({ $0 & 0x80 != 0 }) ?? true { content.append(0) }
            content += digits
        }
    }

    /// Writes a time as RFC 5280 §5.1.2.4 wants it: two digits of the year through 2049, four from 2050.
    private static func write(_ moment: WallTime, into coder: inout DER.Serializer) throws {
        let time = CivilTime(moment)
        if (1950..<2050).contains(time.year) {
            try coder.serialize(
                UTCTime(
                    year: time.year,
                    month: time.month,
                    day: time.day,
                    hours: time.hour,
                    minutes: time.minute,
                    seconds: time.second
                )
            )
        } else {
            try coder.serialize(
                GeneralizedTime(
                    year: time.year,
                    month: time.month,
                    day: time.day,
                    hours: time.hour,
                    minutes: time.minute,
                    seconds: time.second,
                    fractionalSeconds: 0
                )
            )
        }
    }
}
