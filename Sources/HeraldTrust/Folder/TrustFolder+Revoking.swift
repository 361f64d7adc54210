package import HeraldModel

extension TrustFolder {
    /// Every certificate and key that a provider was given, the oldest first.
    package func credentials() throws -> [Credential] {
        let certificates = try ledger.read().credentials.filter { $0.kind == .certificate }
        // Of keys, the file by which tokens are verified is what counts.
        let keys = try providerKeys().map { Credential($0) }
        return (certificates + keys).sorted { ($0.created, $0.id) < ($1.created, $1.id) }
    }

    /// Every device that was enrolled, the oldest first.
    package func enrolledDevices() throws -> [EnrolledDevice] {
        try ledger.read().devices
    }

    /// Revokes a provider's certificate or key, for ever.
    /// - Returns: What was revoked.
    /// - Throws: ``TrustError/Code/unknownID``, ``TrustError/Code/alreadyRevoked``.
    @discardableResult
    package func revokeCredential(_ id: String, now: WallTime) throws -> Credential {
        try TrustLock.with(layout) {
            guard var credential = try credentials().first(where: { $0.id == id }) else {
                throw TrustError(
                    .unknownID,
                    "there is no credential \(id.debugDescription): `herald provider list` shows them"
                )
            }
            try publishRevocations(now: now)
            if let since = credential.revoked {
                throw TrustError(.alreadyRevoked, "\(id) was revoked at \(since.rfc3339)")
            }
            credential.revoked = now
            if credential.kind == .key {
                let keys = try providerKeys().map { key in
                    var key = key
                    if key.id == id { key.revoked = now }
                    return key
                }
                try TrustFile.write(try ProviderKeyFile(keys).json(), to: layout.providerKeys, .secret)
            }
            try ledger.append(.credentialRevoked(id: id, at: now))
            try publishRevocations(now: now)
            return credential
        }
    }

    /// Revokes a device, for ever.
    /// - Returns: What was revoked.
    /// - Throws: ``TrustError/Code/unknownID``, ``TrustError/Code/alreadyRevoked``.
    @discardableResult
    package func revokeDevice(_ id: String, now: WallTime) throws -> EnrolledDevice {
        try TrustLock.with(layout) {
            guard var device = try enrolledDevices().first(where: { $0.id.name == id }) else {
                throw TrustError(
                    .unknownID,
                    "there is no device \(id.debugDescription): `herald device list` shows them"
                )
            }
            try publishRevocations(now: now)
            if let since = device.revoked {
                throw TrustError(.alreadyRevoked, "\(id) was revoked at \(since.rfc3339)")
            }
            device.revoked = now
            try ledger.append(.deviceRevoked(device.id, at: now))
            try publishRevocations(now: now)
            return device
        }
    }

    /// Sees to it that the revocation lists say what the ledger says.
    ///
    /// Called under the lock.
    ///
    /// The ledger is written first: what stands there and not yet in a list (the power went in between, or a list was
    /// lost) is put there by the next command or start. The list of an authority whose key is elsewhere comes from
    /// there.
    func publishRevocations(now: WallTime) throws {
        let contents = try ledger.read()
        let serials: [PeerKind: [(String?, WallTime?)]] = [
            .provider: contents.credentials.map { ($0.serial, $0.revoked) },
            .device: contents.devices.flatMap { device in device.serials.map { ($0, device.revoked) } },
        ]
        for kind in PeerKind.allCases where authority(of: kind).canSign {
            let revoked = (serials[kind] ?? []).reduce(into: [String: WallTime]()) { revoked, entry in
                if let serial = entry.0, let since = entry.1 { revoked[serial] = since }
            }
            try publish(revoked, of: kind, now: now)
        }
    }

    private func publish(_ revoked: [String: WallTime], of kind: PeerKind, now: WallTime) throws {
        let source = RevocationBook.Source(path: layout.revocationList(kind), authority: authority(of: kind))
        // One that is missing or spoilt is made anew.
        let present = TrustFile.exists(source.path) ? try? RevocationBook.read(source) : nil
        if let present, revoked.keys.allSatisfy({ present.revoked(serial: $0) != nil }) { return }
        // Numbers grow with time, so that they do even where the former list is lost.
        let number = RevocationListNumber(UInt64(max(1, now.seconds)))
        let der = try RevocationList.sign(
            revoked: revoked,
            number: max(number, present?.number?.successor ?? number),
            now: max(now, present?.thisUpdate ?? now),
            authority: source.authority
        )
        try TrustFile.write(Array(PEMText.text("X509 CRL", der: der).utf8), to: source.path, .open)
    }
}
