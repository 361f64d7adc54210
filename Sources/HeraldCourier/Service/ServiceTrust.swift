package import HeraldModel
package import HeraldTrust

/// The ``DeviceTrust`` of a running service.
package struct ServiceTrust: DeviceTrust {
    private let office: TrustOffice

    package init(_ office: TrustOffice) {
        self.office = office
    }

    package func device(certificate: [UInt8], now: WallTime) throws -> DeviceIdentity {
        try office.peers.device(certificate: certificate, at: now).get()
    }

    package func isWelcome(_ identity: DeviceIdentity, now: WallTime) -> Bool {
        now <= identity.expires && !office.isRevoked(serial: identity.serial, of: .device)
    }

    package func fault(of certificate: [UInt8], now: WallTime) -> PeerRefusal {
        office.peers.fault(of: .device, certificate: certificate, at: now)
    }
}
