package import HeraldIdentity
package import HeraldModel
import X509

/// Issues, lists and revokes the certificates of devices.
package struct DeviceCertificates: Sendable {
    /// Lifetime of a certificate that is handed out as a file: long, because nothing renews it.
    ///
    /// Revocation ends it earlier.
    static let fileLifetime = Duration.seconds(3650 * 86_400)
    /// The longest name of a device, in bytes.
    package static let maximumNameBytes = 200
    /// The most valid certificates of one device.
    package static let maximumPerDevice = 20

    let folder: TrustFolder

    /// Enrolled devices, by identifier.
    package func page(_ selection: DeviceSelection) async throws -> LedgerPage<EnrolledDevice> {
        try await folder.store.devices(selection)
    }

    /// The device of an identifier.
    /// - Throws: ``TrustError/Code/unknownID``.
    package func device(_ id: String) async throws -> EnrolledDevice {
        guard let name = DeviceID(id), let device = try await folder.store.device(name) else {
            throw DeviceCertificates.unknown(id)
        }
        return device
    }

    /// Replaces the labels of a device.
    /// - Throws: ``TrustError/Code/invalidArgument``, ``TrustError/Code/unknownID``.
    package func setLabels(_ labels: [String: String], of id: String) async throws -> EnrolledDevice {
        try DeviceLabels.check(labels)
        guard let name = DeviceID(id), try await folder.store.setLabels(labels, of: name) else {
            throw DeviceCertificates.unknown(id)
        }
        return try await device(id)
    }

    private static func unknown(_ id: String) -> TrustError {
        TrustError(.unknownID, "no device is named \(id.debugDescription): `herald device list` lists them")
    }

    /// Enrolls a device.
    /// - Parameters:
    ///   - name: For people; at most ``maximumNameBytes`` and without control characters.
    ///   - id: Nil for a new one. An identifier is never reused, because another device would get the notifications that
    ///     wait for it.
    ///   - request: A certificate signing request in PEM or DER, of which only the key counts; nil for a new key.
    ///   - now: Start of the certificate's validity.
    /// - Returns: The certificate, which is in the ledger.
    /// - Throws: ``TrustError/Code/invalidArgument``, ``TrustError/Code/badRequest``, ``TrustError/Code/noSigningKey``, or
    ///   a problem of the folder.
    package func enroll(
        name: String?,
        id: DeviceID? = nil,
        request: [UInt8]? = nil,
        now: WallTime
    ) async throws -> IssuedCertificate<EnrolledDevice> {
        if let name { try DeviceCertificates.check(name: name) }
        let request = try CertificateRequest(request)
        while true {
            let issued = try issue(id, name: name, request, now: now, lifetime: DeviceCertificates.fileLifetime)
            if try await folder.store.add(issued.record, invitation: nil) { return issued }
            guard id == nil else {
                throw TrustError(.invalidArgument, "a device has, or had, this identifier: choose another")
            }
        }
    }

    /// Issues the first certificate of an invited device, and uses up the invitation.
    ///
    /// Both are one transaction of the ledger, durable before this returns. After a crash before it, the code is still
    /// valid. After a crash behind it, the code is used up, and a device is listed that never got its certificate: revoke
    /// it and invite again. In a cluster the log decides first which device uses the code.
    /// - Parameters:
    ///   - code: The invitation's code.
    ///   - request: A certificate signing request in PEM or DER. Its key counts, and its common name if the invitation has
    ///     no name.
    ///   - now: Start of the certificate's validity.
    ///   - lifetime: The certificate's lifetime.
    /// - Returns: The certificate, which is in the ledger.
    /// - Throws: ``TrustError/Code/notInvited`` for a code that is not open; ``TrustError/Code/badRequest``, which leaves it
    ///   open; ``TrustError/Code/noSigningKey``, ``TrustError/Code/unavailable``, or a problem of the folder.
    package func activate(
        code: InvitationCode,
        request: [UInt8],
        now: WallTime,
        lifetime: Duration
    ) async throws -> IssuedCertificate<EnrolledDevice> {
        let request = try CertificateRequest(request)
        while true {
            guard let invitation = try await folder.invitations.find(code) else {
                throw TrustError(.notInvited, "the invitation does not exist")
            }
            let state = invitation.state(at: now)
            guard state == .open else { throw TrustError(.notInvited, "the invitation is \(state.rawValue)") }
            let name = invitation.name ?? request.commonName.flatMap { DeviceCertificates.isName($0) ? $0 : nil }
            let issued = try issue(nil, name: name, request, now: now, lifetime: lifetime, invitation: invitation.id)
            // If other requests have used the invitation up meanwhile, the next look at it says so.
            if let uses = folder.invitationUses {
                guard try await uses.use(invitation, by: issued.record.id, at: now) else { continue }
                // The ledger gets the use from the log.
                if try await folder.store.add(issued.record, invitation: nil) { return issued }
            } else if try await folder.store.add(issued.record, invitation: invitation.id) {
                return issued
            }
        }
    }

    /// Issues a further certificate of a device.
    ///
    /// The earlier ones stay valid until they expire, because the new one may never arrive.
    /// - Throws: ``TrustError/Code/unknownID`` for a device that is not in the ledger, ``TrustError/Code/alreadyRevoked``,
    ///   ``TrustError/Code/tooMany``, ``TrustError/Code/badRequest``, or a problem of the folder.
    package func renew(
        _ id: DeviceID,
        request: [UInt8],
        now: WallTime,
        lifetime: Duration
    ) async throws -> IssuedCertificate<EnrolledDevice> {
        let request = try CertificateRequest(request)
        let certificate = try sign(id, request, now: now, lifetime: lifetime)
        let record = EnrolledDevice.Certificate(certificate)
        let limit = DeviceCertificates.maximumPerDevice
        var isAdded = try await folder.store.renew(id, with: record, limit: limit, now: now)
        if !isAdded, let others = folder.invitationUses, try await folder.store.device(id) == nil {
            // Another node may have enrolled it just now.
            try await others.catchUp()
            isAdded = try await folder.store.renew(id, with: record, limit: limit, now: now)
        }
        guard let device = try await folder.store.device(id) else {
            throw TrustError(.unknownID, "the device is unknown here")
        }
        guard isAdded else {
            guard device.revoked == nil else { throw TrustError(.alreadyRevoked, "the device is revoked") }
            throw TrustError(.tooMany, "the device already has \(limit) valid certificates")
        }
        return try issued(device, certificate, request)
    }

    /// Revokes a device, permanently.
    /// - Returns: The revoked device.
    /// - Throws: ``TrustError/Code/unknownID``, ``TrustError/Code/alreadyRevoked``.
    @discardableResult
    package func revoke(_ id: String, now: WallTime) async throws -> EnrolledDevice {
        let unknown = DeviceCertificates.unknown(id)
        // Before the attempt: a device of another node that comes after it would look revoked.
        guard let name = DeviceID(id), try await folder.store.device(name) != nil else { throw unknown }
        let isRevoked = try await folder.store.revokeDevice(name, at: now)
        guard let device = try await folder.store.device(name) else { throw unknown }
        try await folder.publishRevocation(of: id, now: now)
        guard isRevoked else {
            throw TrustError(.alreadyRevoked, "\(id) was revoked at \(device.revoked?.rfc3339 ?? "an earlier time")")
        }
        return device
    }

    /// Issues the first certificate of a device; nil for a new identifier.
    private func issue(
        _ id: DeviceID?,
        name: String?,
        _ request: CertificateRequest,
        now: WallTime,
        lifetime: Duration,
        invitation: String? = nil
    ) throws -> IssuedCertificate<EnrolledDevice> {
        guard let id = id ?? DeviceID(DeviceCertificates.randomName(12)) else {
            throw TrustError(.unexpected, "no identifier for a device could be made")
        }
        let certificate = try sign(id, request, now: now, lifetime: lifetime)
        let record = EnrolledDevice(
            id: id,
            name: name,
            certificate: .init(certificate),
            created: now,
            invitation: invitation
        )
        return try issued(record, certificate, request)
    }

    private func sign(
        _ id: DeviceID,
        _ request: CertificateRequest,
        now: WallTime,
        lifetime: Duration
    ) throws -> Certificate {
        try folder.deviceAuthority.issue(
            subject: DistinguishedName([
                .init(type: .RDNAttributeType.organizationName, utf8String: "Herald"),
                .init(type: .RDNAttributeType.commonName, utf8String: id.name),
            ]),
            publicKey: request.publicKey,
            usage: .clientAuth,
            names: [.uniformResourceIdentifier(DeviceID.urnPrefix + id.name)],
            now: now,
            lifetime: lifetime
        )
    }

    private func issued(
        _ device: EnrolledDevice,
        _ certificate: Certificate,
        _ request: CertificateRequest
    ) throws -> IssuedCertificate<EnrolledDevice> {
        let pem = try request.pem(certificate, authority: folder.deviceAuthority)
        return IssuedCertificate(record: device, certificate: certificate, pem: pem)
    }

    /// A random name without characters that people confuse; 58 bits for a length of 12.
    static func randomName(_ length: Int) -> String {
        let alphabet = Array("abcdefghjkmnpqrstuvwxyz23456789")
        return String((0..<length).map { _ in alphabet[Int.random(in: alphabet.indices)] })
    }

    private static func isName(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.count <= maximumNameBytes
            && name.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    }

    static func check(name: String) throws {
        guard isName(name) else {
            throw TrustError(
                .invalidArgument,
                "a device's name has 1 to \(maximumNameBytes) bytes and no control characters"
            )
        }
    }
}

extension EnrolledDevice.Certificate {
    fileprivate init(_ certificate: X509.Certificate) {
        self.init(
            serial: SerialNumberText.text(certificate.serialNumber),
            expires: WallTime(certificate.notValidAfter)
        )
    }
}
