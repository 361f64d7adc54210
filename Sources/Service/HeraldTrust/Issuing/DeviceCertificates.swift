import Crypto
package import HeraldIdentity
package import HeraldModel
import SwiftASN1
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

    /// Changes the labels of a device; a change by another process is before or after this one.
    /// - Throws: ``TrustError/Code/invalidArgument``, ``TrustError/Code/unknownID``.
    package func changeLabels(
        of id: String,
        _ change: @escaping @Sendable (_ labels: inout [String: String]) -> Void
    ) async throws -> EnrolledDevice {
        let checked: @Sendable (inout [String: String]) throws -> Void = { labels in
            change(&labels)
            try DeviceLabels.check(labels)
        }
        guard let name = DeviceID(id), try await folder.store.changeLabels(of: name, checked) else {
            throw DeviceCertificates.unknown(id)
        }
        return try await device(id)
    }

    /// Records that the operator has told devices everything that is announced by hand.
    ///
    /// An announcement that adds something makes them silent again. `ids` are devices that do not follow announcements.
    /// Further devices have all of these labels; none if empty. Those that follow announcements are left out.
    /// - Returns: The number of the devices.
    /// - Throws: ``TrustError/Code/unknownID``, ``TrustError/Code/alreadyRevoked``,
    ///   ``TrustError/Code/invalidArgument``; nothing is recorded then.
    package func tell(_ ids: [String], labels: [LabelFilter]) async throws -> Int {
        guard let version = try folder.announcements.newest()?.content.complete else {
            throw TrustError(.unknownID, "devices were told nothing yet: start the service")
        }
        var devices: Set<DeviceID> = []
        for id in ids {
            let device = try await device(id)
            guard device.revoked == nil else { throw TrustError(.alreadyRevoked, "\(id) is revoked") }
            guard device.announcement <= 0 else {
                let words = "\(id) follows announcements, and says itself what it knows: leave it out"
                throw TrustError(.invalidArgument, words)
            }
            devices.insert(device.id)
        }
        var selection = DeviceSelection(limit: 1000)
        (selection.labels, selection.lacking) = (labels, version)
        repeat {
            guard !labels.isEmpty else { break }
            let part = try await page(selection)
            devices.formUnion(part.items.map(\.id))
            selection.after = part.next
        } while selection.after != nil
        return try await folder.store.tell(Array(devices), of: version)
    }

    private static func unknown(_ id: String) -> TrustError {
        TrustError(.unknownID, "no device is named \(id.debugDescription): `herald device list` lists them")
    }

    /// Enrolls a device, and enters its certificate in the ledger.
    ///
    /// The name is for people; at most ``maximumNameBytes`` and without control characters. Without `id` it gets a new
    /// one, which is never reused, because another device would get the notifications that wait for it. Of the
    /// certificate signing request, in PEM or DER, only the key counts; without one there is a new key.
    /// - Throws: ``TrustError/Code/invalidArgument``, ``TrustError/Code/badRequest``, ``TrustError/Code/noSigningKey``,
    ///   or a problem of the folder.
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

    /// Issues the first certificate of an invited device, or a further one of a known device, and uses up the
    /// invitation.
    ///
    /// Both are one transaction of the ledger, durable before this returns. In a cluster the log decides first which
    /// device uses the code. The identifier of a new device follows from invitation and key, so a request with the same
    /// key finds the device, and gets the same certificate until the device has connected: its client may not have got
    /// the answer. That is so whatever became of the invitation, because the device exists; a revoked one gets nothing.
    ///
    /// Of the certificate signing request, in PEM or DER, the key counts, and its common name if the invitation has no
    /// name.
    /// - Throws: ``TrustError/Code/notInvited`` for a code that is not open, or whose device is revoked;
    ///   ``TrustError/Code/badRequest``, which leaves it open; ``TrustError/Code/tooMany`` certificates of a known
    ///   device; ``TrustError/Code/noSigningKey``, ``TrustError/Code/unavailable``, or a problem of the folder.
    package func activate(
        code: InvitationCode,
        request: [UInt8],
        now: WallTime,
        lifetime: Duration
    ) async throws -> IssuedCertificate<EnrolledDevice> {
        let request = try CertificateRequest(request)
        while true {
            guard let invitation = try await folder.invitations.find(code) else {
                throw TrustError(.notInvited, "this service did not issue this invitation code")
            }
            let applicant = try DeviceCertificates.identifier(of: request, invitation)
            if let kept = try await kept(for: request, invitation, applicant, now: now) { return kept }
            try DeviceCertificates.check(invitation.state(at: now))
            let issued: IssuedCertificate<EnrolledDevice>
            if let device = invitation.device {
                issued = try await further(device, request, now: now, lifetime: lifetime)
            } else {
                // An identifier that is taken belongs to another key, or to a device that has connected, whose key is
                // invited again.
                let id = try await folder.store.device(applicant) == nil ? applicant : nil
                issued = try issue(
                    id,
                    name: name(for: request, invitation),
                    request,
                    now: now,
                    lifetime: lifetime,
                    invitation
                )
            }
            // If other requests have used the invitation up meanwhile, the next look at it says so.
            if try await use(invitation, for: issued, by: applicant, now: now) { return issued }
        }
    }

    /// Uses up an invitation, and adds what it made to the ledger.
    private func use(
        _ invitation: Invitation,
        for issued: IssuedCertificate<EnrolledDevice>,
        by applicant: DeviceID,
        now: WallTime
    ) async throws -> Bool {
        let uses = folder.invitationUses
        let user = invitation.device == nil ? issued.record.id : applicant
        if let uses, try await !uses.use(invitation, by: user, at: now) { return false }
        // In a cluster, the ledger gets the use from the log.
        guard let device = invitation.device else {
            return try await folder.store.add(issued.record, invitation: uses == nil ? invitation.id : nil)
        }
        return try await folder.store.renew(
            device,
            with: .init(issued.certificate),
            kept: PEMBundle.der(issued.certificate),
            use: uses == nil ? (invitation.id, Invitation.Use(device: user, at: now)) : nil,
            limit: DeviceCertificates.maximumPerDevice,
            now: now
        )
    }

    /// The certificate that an earlier request with the same key got; nil if there was none, or its device has connected.
    private func kept(
        for request: CertificateRequest,
        _ invitation: Invitation,
        _ applicant: DeviceID,
        now: WallTime
    ) async throws -> IssuedCertificate<EnrolledDevice>? {
        func known() async throws -> IssuedCertificate<EnrolledDevice>? {
            guard let device = try await folder.store.device(invitation.device ?? applicant), device.revoked == nil,
                invitation.device != nil || device.invitation == invitation.id,
                let der = device.kept.certificate, let certificate = try? Certificate(derEncoded: der),
                certificate.publicKey == request.publicKey, now < WallTime(certificate.notValidAfter),
                certificate.issuer == folder.deviceAuthority.certificate.subject
            else { return nil }
            return try issued(device, certificate, request)
        }
        if let found = try await known() { return found }
        guard let others = folder.invitationUses else { return nil }
        // Another node may have answered it.
        try await others.catchUp()
        return try await known()
    }

    /// Makes a further certificate of an invited device.
    private func further(
        _ id: DeviceID,
        _ request: CertificateRequest,
        now: WallTime,
        lifetime: Duration
    ) async throws -> IssuedCertificate<EnrolledDevice> {
        let device = try await device(id.name)
        guard device.revoked == nil else { throw DeviceCertificates.notInvited("is for a device that is revoked") }
        guard device.certificates.count(where: { $0.expires >= now }) < DeviceCertificates.maximumPerDevice else {
            throw DeviceCertificates.tooMany
        }
        return try issued(device, try sign(id, request, now: now, lifetime: lifetime), request)
    }

    private static func check(_ state: InvitationState) throws {
        switch state {
        case .open: return
        case .used: throw notInvited("is used up")
        case .expired: throw notInvited("has expired")
        case .withdrawn: throw notInvited("was withdrawn")
        }
    }

    private static func notInvited(_ why: String) -> TrustError {
        TrustError(.notInvited, "this invitation code \(why): ask for another")
    }

    private static let tooMany = TrustError(.tooMany, "the device already has \(maximumPerDevice) valid certificates")

    private func name(for request: CertificateRequest, _ invitation: Invitation) -> String? {
        invitation.name ?? request.commonName.flatMap { DeviceCertificates.isName($0) ? $0 : nil }
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
        func add() async throws -> Bool {
            try await folder.store.renew(id, with: record, kept: nil, use: nil, limit: limit, now: now)
        }
        var isAdded = try await add()
        if !isAdded, let others = folder.invitationUses, try await folder.store.device(id) == nil {
            // Another node may have enrolled it just now.
            try await others.catchUp()
            isAdded = try await add()
        }
        guard let device = try await folder.store.device(id) else {
            throw TrustError(.unknownID, "the device is unknown here")
        }
        guard isAdded else {
            guard device.revoked == nil else { throw TrustError(.alreadyRevoked, "the device is revoked") }
            throw DeviceCertificates.tooMany
        }
        return try issued(device, certificate, request)
    }

    /// Revokes a device, permanently.
    ///
    /// The use of a device that has never connected is its invitation's again.
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
        _ invitation: Invitation? = nil
    ) throws -> IssuedCertificate<EnrolledDevice> {
        let id = try id ?? DeviceCertificates.identifier(DeviceCertificates.randomName(DeviceCertificates.nameLength))
        let certificate = try sign(id, request, now: now, lifetime: lifetime)
        var record = EnrolledDevice(
            id: id,
            name: name,
            certificate: .init(certificate),
            created: now,
            invitation: invitation?.id
        )
        if let invitation {
            record.labels = DeviceLabels(invitation.labels)
            record.kept = KeptCertificate(PEMBundle.der(certificate))
        }
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

    /// The length of a device's identifier that Herald chooses: 58 bits.
    private static let nameLength = 12
    /// Without characters that people confuse.
    private static let alphabet = Array("abcdefghjkmnpqrstuvwxyz23456789")

    static func randomName(_ length: Int) -> String {
        String((0..<length).map { _ in alphabet[Int.random(in: alphabet.indices)] })
    }

    /// The identifier of the device that uses an invitation with the key of a request.
    private static func identifier(of request: CertificateRequest, _ invitation: Invitation) throws -> DeviceID {
        let hash = SHA256.hash(data: invitation.digest + request.publicKey.subjectPublicKeyInfoBytes)
        return try identifier(String(hash.prefix(nameLength).map { alphabet[Int($0) % alphabet.count] }))
    }

    private static func identifier(_ name: String) throws -> DeviceID {
        guard let id = DeviceID(name) else { throw TrustError(.unexpected, "no identifier for a device could be made") }
        return id
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
