import HeraldModel

/// Signs and writes the revocation lists that follow from the ledger.
struct RevocationPublisher {
    let folder: TrustFolder

    /// Writes the lists that lack a revocation of the ledger.
    ///
    /// Called under the lock. The ledger is written first. If the power fails in between, or a list is lost, the next
    /// command or start writes it again. Herald writes no list for an authority whose key is kept elsewhere.
    func publish(now: WallTime) async throws {
        for kind in PeerKind.allCases where folder.authority(of: kind).canSign {
            try publish(try await folder.store.revokedSerials(of: kind), of: kind, now: now)
        }
    }

    private func publish(_ revoked: [String: WallTime], of kind: PeerKind, now: WallTime) throws {
        let source = folder.revocationSource(of: kind)
        let present = try present(source)
        if let present, revoked.keys.allSatisfy({ present.revoked(serial: $0) != nil }) { return }
        // Numbers follow the clock, so that they rise even if the earlier list is lost.
        let number = RevocationListNumber(UInt64(max(1, now.seconds)))
        let der = try RevocationListSigner.sign(
            revoked: revoked,
            number: max(number, present?.number?.successor ?? number),
            now: max(now, present?.thisUpdate ?? now),
            authority: source.authority
        )
        try TrustFile.write(Array(PEMText.text("X509 CRL", der: der).utf8), to: source.path, .open)
    }

    /// The present list; nil for a missing or damaged one, which is replaced.
    ///
    /// A list that cannot be read now is an error: the new list must follow its number and time.
    private func present(_ source: RevocationLists.Source) throws -> RevocationList? {
        do {
            return try RevocationLists.read(source)
        } catch let error as TrustError where error.isAboutContent || error.code == .missing {
            return nil
        }
    }
}
