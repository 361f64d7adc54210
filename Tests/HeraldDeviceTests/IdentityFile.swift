import Foundation
import HeraldModel
import X509

@testable import HeraldTrust

/// The identity of a device `kitchen`, made once for all tests.
enum IdentityFile {
    static let pem: Result<[UInt8], any Error> = Result {
        let now = WallTime(seconds: Int64(Date().timeIntervalSince1970))
        let authority = try CertificateAuthority.make(name: "Test Devices", now: now)
        let request = try CertificateRequest(nil)
        let certificate = try authority.issue(
            subject: DistinguishedName([.init(type: .RDNAttributeType.commonName, utf8String: "kitchen")]),
            publicKey: request.publicKey,
            usage: .clientAuth,
            names: [.uniformResourceIdentifier(DeviceID.urnPrefix + "kitchen")],
            now: now,
            lifetime: .seconds(86_400)
        )
        return Array(try request.pem(certificate, authority: authority).utf8)
    }
}
