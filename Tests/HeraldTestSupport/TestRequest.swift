import Crypto
import SwiftASN1
import X509

/// A certificate signing request of a device.
package enum TestRequest {
    /// - Returns: A request for a new key, in DER.
    package static func make(name: String = "lamp") throws -> [UInt8] {
        let request = try CertificateSigningRequest(
            version: .v1,
            subject: DistinguishedName([.init(type: .RDNAttributeType.commonName, utf8String: name)]),
            privateKey: Certificate.PrivateKey(P256.Signing.PrivateKey()),
            attributes: CertificateSigningRequest.Attributes([])
        )
        var serializer = DER.Serializer()
        try serializer.serialize(request)
        return serializer.serializedBytes
    }
}
