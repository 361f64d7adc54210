import Foundation
import HeraldModel
import HeraldTrust
import NIOSSL
import SwiftASN1
import X509

/// How a new device becomes one of a service.
///
/// 1. Looks whether the service is the one that its invitation code names, and tells it nothing before it knows.
/// 2. Makes a key, which stays here, and asks for a certificate with the code.
/// 3. Checks what it got, and keeps it in its folder.
public struct DeviceActivation: Sendable {
    /// The activation door.
    public var service: ServiceAddress
    /// Where everything is kept.
    public var folder: DeviceFolder
    /// What people call the device, where the invitation does not say; nil for this machine's name.
    public var name: String?
    /// The port of the door for devices; nil to have the service say.
    public var devicePort: Int?
    /// Whether an identity that is in the folder may be lost.
    public var replaces = false
    /// How long each answer may take.
    public var timeout: Duration = .seconds(20)

    /// Says where to go and what to keep; does nothing yet.
    public init(service: ServiceAddress, folder: DeviceFolder) {
        self.service = service
        self.folder = folder
    }

    /// Does it.
    /// - Parameter code: The invitation code, as it was given out.
    /// - Returns: Who the device is from now on.
    /// - Throws: ``EnrollmentError``; what identity the folder had, it still has.
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
            // A folder with anything in it stays.
            if isNew { rmdir(folder.path) }
            throw error
        }
    }

    private func enroll(_ invitation: InvitationCode) async throws -> DeviceCredential {
        let root = try await FirstContact.authority(named: invitation, at: service, timeout: timeout)
        guard let trusted = try? NIOSSLCertificate(bytes: root, format: .der),
            let authority = try? Certificate(derEncoded: root)
        else {
            throw EnrollmentError(.untrusted, "the authority of \(service) cannot be read")
        }
        return try await EnrollmentClient.with(service, authorities: [trusted], timeout: timeout) { client in
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
}

extension DeviceFolder {
    /// Gets the device's next certificate now, with a new key, and keeps both; the one before stays good until its end.
    /// - Throws: ``EnrollmentError``, ``DeviceError``; the folder is then as it was.
    public func renew(timeout: Duration = .seconds(20)) async throws -> DeviceCredential {
        let present = try credential()
        guard let certificate = try certificates().first else { return present }
        guard let authorities = try? NIOSSLCertificate.fromPEMBytes(try authorities()), !authorities.isEmpty else {
            throw EnrollmentError(.folder, "\(authorityPath) holds no certificate: activate the device anew")
        }
        let address = try ServiceAddress(try service().activation)
        return try await EnrollmentClient.with(
            address,
            authorities: authorities,
            credential: present,
            timeout: timeout
        ) { client in
            let authorities = try await client.authorities()
            let key = DeviceKey()
            let answer = try await client.renew(request: try key.request(following: certificate))
            let identity = try key.identity(from: answer, authorities: authorities, expected: present.id)
            try replaceIdentity(identity.pem)
            return identity.credential
        }
    }

    /// When the present certificate begins and ends.
    func term() throws -> (begins: WallTime, expires: WallTime)? {
        try certificates().first.map { certificate in
            (
                WallTime(seconds: Int64(certificate.notValidBefore.timeIntervalSince1970)),
                WallTime(seconds: Int64(certificate.notValidAfter.timeIntervalSince1970))
            )
        }
    }
}
