package import HeraldModel
import SwiftASN1
import X509

/// The validity of a trust folder's certificates, for the operator.
package struct TrustEnds: Sendable {
    package struct Authority: Hashable, Sendable {
        /// Like `device authority`.
        package let name: String
        package let expires: WallTime

        init(name: String, expires: WallTime) {
            self.name = name
            self.expires = expires
        }

        /// Reads an authority's certificate (DER), under its own name.
        package init?(_ der: [UInt8]) {
            guard let certificate = try? Certificate(derEncoded: der) else { return nil }
            self.init(name: "\(certificate.subject)", expires: WallTime(certificate.notValidAfter))
        }
    }

    package let server: ServerCertificate
    package let authorities: [Authority]
    /// The begin of the newest of these certificates.
    package let begun: WallTime

    /// Reads the certificates of a folder.
    /// - Throws: ``TrustError``.
    package init(_ folder: TrustFolder) throws {
        server = try folder.serverCertificate()
        let named = [
            ("root authority", folder.root), ("provider authority", folder.providerAuthority),
            ("device authority", folder.deviceAuthority),
        ]
        authorities = named.map { Authority(name: $0, expires: WallTime($1.certificate.notValidAfter)) }
        begun = named.map { WallTime($1.certificate.notValidBefore) }.reduce(server.begins, max)
    }
}
