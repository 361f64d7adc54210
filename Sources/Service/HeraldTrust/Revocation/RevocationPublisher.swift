import HeraldIdentity
import HeraldModel

/// Signs and writes the revocation lists that follow from the ledger.
struct RevocationPublisher {
    let folder: TrustFolder

    /// Writes the lists that lack a revocation of the ledger.
    ///
    /// Called under the lock. The ledger is written first. If the power fails in between, or a list is lost, the next
    /// command or start writes it again. Herald writes no list for an authority whose key is kept elsewhere.
    func publish(now: WallTime) async throws {
        for list in try await due() {
            // Numbers follow the clock, so that they rise even if the earlier list is lost.
            let number = RevocationListNumber(UInt64(max(1, now.seconds)))
            let der = try RevocationListSigner.sign(
                revoked: list.revoked,
                number: max(number, list.present?.number?.successor ?? number),
                now: max(now, list.present?.thisUpdate ?? now),
                authority: list.source.authority
            )
            try TrustFile.write(Array(PEMFile.text("X509 CRL", der: der).utf8), to: list.source.path, .open)
        }
    }

    /// A list that must be written.
    struct DueList {
        let source: RevocationLists.Source
        /// nil if it is missing or damaged.
        let present: RevocationList?
        let revoked: [String: WallTime]
    }

    /// The lists that lack a revocation of the ledger.
    func due() async throws -> [DueList] {
        var lists: [DueList] = []
        for kind in PeerKind.allCases where folder.authority(of: kind).canSign {
            let source = folder.revocationSource(of: kind)
            let revoked = try await folder.store.revokedSerials(of: kind)
            let present = try present(source)
            if let present, revoked.keys.allSatisfy({ present.revoked(serial: $0) != nil }) { continue }
            lists.append(DueList(source: source, present: present, revoked: revoked))
        }
        return lists
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
