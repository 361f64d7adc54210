package import HeraldModel
import X509

extension TrustFolder {
    /// Of a certificate in a file: long, because nothing says that whoever has the file renews it; revocation ends it sooner.
    static let deviceLifetime = Duration.seconds(3650 * 86_400)
    /// The longest name of a device, in bytes.
    package static let maximumNameBytes = 200
    /// The most certificates of one device that are good at one time.
    package static let maximumCertificatesPerDevice = 20

    /// Enrolls a device.
    /// - Parameters:
    ///   - name: For people; at most ``maximumNameBytes`` and without control characters.
    ///   - id: Nil for a new one. An identifier is used once, also after its device was revoked: what waits for a device
    ///     must not fall to another.
    ///   - request: A certificate signing request in PEM or DER, of which the key alone is taken; nil for a new key.
    ///   - now: When its certificate begins.
    /// - Returns: The certificate; what it is, is on record.
    /// - Throws: ``TrustError/Code/invalidArgument``, ``TrustError/Code/badRequest``, ``TrustError/Code/noSigningKey``, or
    ///   what is wrong with the folder.
    package func enrollDevice(
        name: String?,
        id: DeviceID? = nil,
        request: [UInt8]? = nil,
        now: WallTime
    ) throws -> IssuedCertificate<EnrolledDevice> {
        if let name { try TrustFolder.check(name: name) }
        let holder = try CertificateHolder(request: request)
        return try TrustLock.with(layout) {
            let taken = Set(try ledger.read().devices.map(\.id))
            guard let id = id ?? TrustFolder.newDeviceID(besides: taken), !taken.contains(id) else {
                throw TrustError(.invalidArgument, "there is, or was, a device of this identifier: choose another")
            }
            let certificate = try issue(to: id, holder.publicKey, now: now, lifetime: TrustFolder.deviceLifetime)
            let device = EnrolledDevice(id, name: name, certificate, created: now)
            try ledger.append(.device(device))
            return IssuedCertificate(record: device, certificate: certificate, pem: try pem(certificate, holder))
        }
    }

    /// Gives a device that was invited its certificate, and ends the invitation.
    ///
    /// Both are one entry of the ledger, durable before this returns. A crash before it leaves the code good, and nobody has
    /// a certificate; after it the code is used up, and if the certificate never reached its device, the device stands in
    /// the list without ever connecting: revoke it, and invite anew.
    /// - Parameters:
    ///   - code: As it was given out.
    ///   - request: A certificate signing request in PEM or DER. Its key is taken, and its common name for people, where the
    ///     invitation has no name.
    ///   - now: When the certificate begins.
    ///   - lifetime: How long it is good.
    /// - Returns: The certificate; what it is, is on record.
    /// - Throws: ``TrustError/Code/notInvited`` for a code that is not open; ``TrustError/Code/badRequest``, which leaves it
    ///   open; ``TrustError/Code/noSigningKey``, or what is wrong with the folder.
    package func activateDevice(
        code: InvitationCode,
        request: [UInt8],
        now: WallTime,
        lifetime: Duration
    ) throws -> IssuedCertificate<EnrolledDevice> {
        let holder = try CertificateHolder(request: request)
        return try TrustLock.with(layout) {
            let contents = try ledger.read()
            guard let invitation = Invitation.find(code.digest, in: contents.invitations) else {
                throw TrustError(.notInvited, "there is no such invitation")
            }
            let state = invitation.state(at: now)
            guard state == .open else { throw TrustError(.notInvited, "the invitation is \(state.rawValue)") }
            guard let id = TrustFolder.newDeviceID(besides: Set(contents.devices.map(\.id))) else {
                throw TrustError(.unexpected, "no identifier for a device could be made")
            }
            let certificate = try issue(to: id, holder.publicKey, now: now, lifetime: lifetime)
            let name = invitation.name ?? holder.commonName.flatMap { TrustFolder.isName($0) ? $0 : nil }
            let device = EnrolledDevice(id, name: name, certificate, created: now)
            try ledger.append(.device(device, invitation: invitation.id))
            return IssuedCertificate(record: device, certificate: certificate, pem: try pem(certificate, holder))
        }
    }

    /// Gives a device a further certificate; those it has stay good until their own ends, since this one may never arrive.
    /// - Throws: ``TrustError/Code/unknownID`` for a device that is not on record, ``TrustError/Code/alreadyRevoked``,
    ///   ``TrustError/Code/tooMany``, ``TrustError/Code/badRequest``, or what is wrong with the folder.
    package func renewDevice(
        _ id: DeviceID,
        request: [UInt8],
        now: WallTime,
        lifetime: Duration
    ) throws -> IssuedCertificate<EnrolledDevice> {
        let holder = try CertificateHolder(request: request)
        return try TrustLock.with(layout) {
            guard var device = try ledger.read().devices.first(where: { $0.id == id }) else {
                throw TrustError(.unknownID, "the device is not on record here")
            }
            guard device.revoked == nil else { throw TrustError(.alreadyRevoked, "the device is revoked") }
            guard device.certificatesInForce(at: now) < TrustFolder.maximumCertificatesPerDevice else {
                throw TrustError(
                    .tooMany,
                    "the device has \(TrustFolder.maximumCertificatesPerDevice) certificates in force already"
                )
            }
            let certificate = try issue(to: id, holder.publicKey, now: now, lifetime: lifetime)
            device.renew(
                serial: SerialText.text(certificate.serialNumber),
                expires: WallTime(certificate.notValidAfter)
            )
            try ledger.append(.deviceRenewed(id, serial: device.serial, expires: device.expires, at: now))
            return IssuedCertificate(record: device, certificate: certificate, pem: try pem(certificate, holder))
        }
    }

    private func issue(
        to id: DeviceID,
        _ key: Certificate.PublicKey,
        now: WallTime,
        lifetime: Duration
    ) throws -> Certificate {
        try deviceAuthority.issue(
            subject: DistinguishedName([
                .init(type: .RDNAttributeType.organizationName, utf8String: "Herald"),
                .init(type: .RDNAttributeType.commonName, utf8String: id.name),
            ]),
            publicKey: key,
            usage: .clientAuth,
            names: [.uniformResourceIdentifier(DeviceID.urnPrefix + id.name)],
            now: now,
            lifetime: lifetime
        )
    }

    private func pem(_ certificate: Certificate, _ holder: CertificateHolder) throws -> String {
        try holder.pem(certificate, authority: deviceAuthority)
    }

    /// Twelve characters that nobody misreads: 58 bits.
    private static func newDeviceID(besides taken: Set<DeviceID>) -> DeviceID? {
        while true {
            let id = DeviceID(randomName(12))
            if let id, taken.contains(id) { continue }
            return id
        }
    }

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
                "a device's name has at most \(maximumNameBytes) bytes, and no control characters"
            )
        }
    }
}

extension EnrolledDevice {
    init(_ id: DeviceID, name: String?, _ certificate: Certificate, created: WallTime) {
        self.init(
            id: id,
            name: name,
            serial: SerialText.text(certificate.serialNumber),
            created: created,
            expires: WallTime(certificate.notValidAfter)
        )
    }
}
