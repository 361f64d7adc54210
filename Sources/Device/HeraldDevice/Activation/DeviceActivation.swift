import Foundation
import HeraldIdentity
import HeraldModel
import NIOSSL
import SwiftASN1
import X509

/// Activates a device: gets its first certificate with an invitation code (Enrollment over Secure Transport, RFC 7030).
///
/// 1. Checks that the service is the one that the invitation code names, before it sends anything.
/// 2. Creates a key, which stays on the device, and requests a certificate with the code.
/// 3. Checks the certificate, and saves it in the device's folder.
public struct DeviceActivation: Sendable {
    /// The activation listener.
    public var service: ServiceAddress
    /// The device's folder.
    public var folder: DeviceFolder
    /// The device's name, if the invitation has none; nil for this machine's name.
    public var name: String?
    /// The service's device port; nil to ask the service.
    public var devicePort: Int?
    /// Whether an identity in the folder may be replaced.
    public var replaces = false
    /// Timeout of each request.
    public var timeout: Duration = .seconds(20)

    /// Creates an activation; does nothing yet.
    public init(service: ServiceAddress, folder: DeviceFolder) {
        self.service = service
        self.folder = folder
    }

    /// Activates the device.
    /// - Parameter code: The invitation code, as it was issued.
    /// - Returns: The device's identity.
    /// - Throws: ``EnrollmentError``; the folder is then unchanged.
    public func activate(code: String) async throws -> DeviceCredential {
        let invitation: InvitationCode
        do {
            invitation = try InvitationCode(code)
        } catch {
            throw EnrollmentError(.mistyped, error.words)
        }
        try folder.checkVacant(replaces: replaces)
        let isNew = !TrustFile.exists(folder.path)
        try folder.prepare()
        do {
            return try await enroll(invitation)
        } catch {
            // rmdir(2) deletes only an empty folder.
            if isNew { rmdir(folder.path) }
            throw error
        }
    }

    private func enroll(_ invitation: InvitationCode) async throws -> DeviceCredential {
        let root = try await TrustBootstrap.authority(named: invitation, at: service, timeout: timeout)
        guard let trusted = try? NIOSSLCertificate(bytes: root, format: .der),
            let authority = try? Certificate(derEncoded: root)
        else {
            throw EnrollmentError(.untrusted, "the authority of \(service) cannot be read")
        }
        let client = try EnrollmentClient(service, authorities: [trusted], timeout: timeout)
        let authorities = try await client.authorities()
        let port = if let devicePort { devicePort } else { try await client.devicePort() }
        let key = DeviceKey()
        let request = try key.request(name: name ?? ProcessInfo.processInfo.hostName)
        let answer = try await client.enroll(request: request, code: invitation)
        let identity = try key.identity(from: answer, authorities: authorities, expected: nil)
        try folder.save(
            identity: identity.pem,
            authority: Array(try PEMBundle(certificates: [authority]).pem().utf8),
            service: DeviceFolder.Service(host: service.host, port: port, activation: service.description),
            replaces: replaces
        )
        return identity.credential
    }
}

extension DeviceFolder {
    /// Renews the device's certificate now, with a new key.
    ///
    /// The former certificate stays valid until it expires.
    /// - Throws: ``EnrollmentError``, ``DeviceError``; the folder is then unchanged.
    public func renew(timeout: Duration = .seconds(20)) async throws -> DeviceCredential {
        let present = try credential()
        guard let certificate = try certificates().first else { return present }
        let trusted: [NIOSSLCertificate]
        do {
            trusted = try NIOSSLCertificate.authorities(try self.authorities())
        } catch let fault as PEMFault {
            throw EnrollmentError(.folder, "\(authorityPath) cannot be used: \(fault); activate the device again")
        }
        let address = try ServiceAddress(try service().activation)
        let client = try EnrollmentClient(address, authorities: trusted, credential: present, timeout: timeout)
        let authorities = try await client.authorities()
        let key = DeviceKey()
        let answer = try await client.renew(request: try key.request(following: certificate))
        let identity = try key.identity(from: answer, authorities: authorities, expected: present.id)
        try replaceIdentity(identity.pem)
        return identity.credential
    }

    /// The validity of the present certificate.
    func validity() throws -> (begins: WallTime, expires: WallTime)? {
        try certificates().first.map { certificate in
            (
                WallTime(seconds: Int64(certificate.notValidBefore.timeIntervalSince1970)),
                WallTime(seconds: Int64(certificate.notValidAfter.timeIntervalSince1970))
            )
        }
    }
}
