import Crypto
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
    /// The time in which requests are repeated that were not answered, or that the service wants later.
    public var patience: Duration = .seconds(30)

    /// Creates an activation; does nothing yet.
    public init(service: ServiceAddress, folder: DeviceFolder) {
        self.service = service
        self.folder = folder
    }

    /// Activates the device.
    /// - Parameter code: The invitation code, as it was issued.
    /// - Returns: The device's identity.
    /// - Throws: ``EnrollmentError``; the folder is then unchanged. If it is not known whether the service has issued the
    ///   certificate, the key stays in the folder: a further activation with the same code gets the same certificate.
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
            return try await repeating { try await enroll(invitation) }
        } catch {
            // rmdir(2) deletes only an empty folder.
            if isNew { rmdir(folder.path) }
            throw error
        }
    }

    /// Repeats a step whose failure may pass, after growing pauses.
    private func repeating<Value>(_ step: () async throws -> Value) async throws -> Value {
        let end = ContinuousClock.now + patience
        var pause = Duration.milliseconds(200)
        while true {
            do {
                return try await step()
            } catch let error as EnrollmentError where error.mayPass {
                // Many devices may have begun at once.
                let wait = max(error.retryAfter ?? .zero, pause * Double.random(in: 0.5...1.5))
                guard ContinuousClock.now + wait < end else { throw error }
                try await Task.sleep(for: wait)
                pause = min(pause * 2, .seconds(5))
            }
        }
    }

    private func enroll(_ invitation: InvitationCode) async throws -> DeviceCredential {
        let root = try await TrustBootstrap.authority(named: invitation, at: service, timeout: timeout)
        guard let trusted = try? NIOSSLCertificate(bytes: root, format: .der) else {
            throw EnrollmentError(.untrusted, "the authority of \(service) cannot be read")
        }
        let client = try EnrollmentClient(service, authorities: [trusted], timeout: timeout)
        let authorities = try await client.authorities()
        let description = try await client.description()
        let (announcement, announcementKey) = try Self.announcement(description, of: service)
        let key = try folder.nextKey()
        let request = try key.request(name: name ?? ProcessInfo.processInfo.hostName)
        let answer: [Certificate]
        do {
            answer = try await client.enroll(request: request, code: invitation)
        } catch let error as EnrollmentError where error.code == .refused && !error.mayPass {
            folder.forgetNextKey()
            throw error
        }
        let identity = try key.identity(from: answer, authorities: authorities, expected: nil)
        try folder.save(
            identity: identity.pem,
            authority: try DeviceFolder.pem(announcement.authorities),
            service: DeviceFolder.Service(
                announced: announcement.addresses.isEmpty
                    ? [.init(host: service.host, port: devicePort ?? description.device.port, activation: service.port)]
                    : announcement.addresses,
                announcementKey: announcementKey.x963Representation.base64EncodedString(),
                announcement: announcement.version
            ),
            replaces: replaces
        )
        folder.forgetNextKey()
        return identity.credential
    }
}

extension DeviceActivation {
    /// The announcement of a service, with the key that the device trusts from now on: the connection vouches for both.
    private static func announcement(
        _ description: EnrollmentClient.Description,
        of service: ServiceAddress
    ) throws -> (Announcement, P256.Signing.PublicKey) {
        guard let text = description.announcement, let key = try? Announcement.key(of: text),
            let announcement = try? Announcement(text, signedBy: key)
        else {
            throw EnrollmentError(.badAnswer, "the service at \(service) does not say whom its devices are to trust")
        }
        return (announcement, key)
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
        _ = try await refreshAnnouncement(timeout: timeout)
        let trusted: [NIOSSLCertificate]
        do {
            trusted = try NIOSSLCertificate.authorities(try self.authorities())
        } catch let fault as PEMFault {
            throw EnrollmentError(.folder, "\(authorityPath) cannot be used: \(fault); activate the device again")
        }
        var failure: EnrollmentError?
        for address in try service().addresses {
            do {
                let client = try EnrollmentClient(
                    address.enrollment,
                    authorities: trusted,
                    credential: present,
                    timeout: timeout
                )
                let authorities = try await client.authorities()
                let key = DeviceKey()
                let answer = try await client.renew(request: try key.request(following: certificate))
                let identity = try key.identity(from: answer, authorities: authorities, expected: present.id)
                try replaceIdentity(identity.pem)
                return identity.credential
            } catch let error as EnrollmentError where [.unreachable, .untrusted].contains(error.code) {
                failure = failure ?? error
            }
        }
        throw failure ?? EnrollmentError(.folder, "\(servicePath) has no address: activate the device again")
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
