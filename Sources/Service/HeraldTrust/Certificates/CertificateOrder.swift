import SwiftASN1
import X509

/// The certificates of a file in the order that TLS wants (RFC 5246 §7.4.2): that of the key, then each one's issuer.
struct CertificateOrder {
    /// The fields of a certificate that decide; TLS reads more certificates than X.509's library.
    private struct Fields {
        let der: [UInt8]
        let issuer: ArraySlice<UInt8>?
        let subject: ArraySlice<UInt8>?
        /// The bits of its public key.
        let key: ArraySlice<UInt8>?

        /// RFC 5280 §4.1: version, which may be absent, serial number, algorithm, issuer, validity, subject, key.
        init(_ der: [UInt8]) {
            self.der = der
            let members = DERElement(DERElement(der)?.members.first)?.members ?? []
            let fields = members.drop { $0.identifier.tagClass == .contextSpecific }.prefix(6).map { $0 }
            func name(_ index: Int) -> ArraySlice<UInt8>? {
                fields.indices.contains(index) ? fields[index].encodedBytes : nil
            }
            (issuer, subject) = (name(2), name(4))
            let bits = DERElement(fields.count == 6 ? fields[5] : nil)?.members.last
            key = bits.flatMap { try? ASN1BitString(derEncoded: $0) }?.bytes
        }
    }

    /// The certificates, those that are not part of the chain last; nil if the key belongs to none.
    static func chain(_ certificates: [[UInt8]], of key: Certificate.PublicKey) -> [[UInt8]]? {
        let bits = key.subjectPublicKeyInfoBytes
        var rest = certificates.map(Fields.init)
        var chain: [Fields] = []
        var next = rest.firstIndex { $0.key == bits }
        while let index = next {
            let found = rest.remove(at: index)
            chain.append(found)
            next = rest.firstIndex { $0.subject != nil && $0.subject == found.issuer }
        }
        return chain.isEmpty ? nil : (chain + rest).map(\.der)
    }
}
