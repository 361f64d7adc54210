package import HeraldModel
import X509

/// The validity of a trust folder's certificates, for the operator.
package struct TrustEnds: Sendable {
    package struct Authority: Hashable, Sendable {
        /// Like `device authority`.
        package let name: String
        package let expires: WallTime
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
