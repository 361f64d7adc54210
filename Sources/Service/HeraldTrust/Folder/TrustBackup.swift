import Foundation
import HeraldIdentity

/// The trust folder as a backup sees it: which files belong to it, and whether a copy of them is whole.
package enum TrustBackup {
    /// Calls `body` with the names of the folder's entries, without the ledger, while no command changes a file.
    ///
    /// Changes of the ledger go on. The ledger is always changed first, so a copy of it that `body` makes last has every
    /// revocation of the copied lists.
    /// - Throws: ``TrustError`` if the folder cannot be read or locked, and what `body` throws.
    package static func whileUnchanged<Result>(
        _ layout: TrustLayout,
        _ body: ([String]) throws -> Result
    ) async throws -> Result {
        try await TrustLock.withExisting(layout) {
            let names: [String]
            do {
                names = try FileManager.default.contentsOfDirectory(atPath: layout.folder)
            } catch {
                throw TrustError(
                    .unreadable,
                    "cannot read the folder \(layout.folder): run the command as its owner, or as root"
                )
            }
            return try body(names.filter(isCopied).sorted())
        }
    }

    /// Whether a name is neither the lock's, nor the ledger's, nor the announcement's, nor that of a file that is being
    /// written.
    ///
    /// After a restore the service signs the announcement anew, newer than all that devices have.
    private static func isCopied(_ name: String) -> Bool {
        name != "lock" && name != "announcement.jws" && !name.hasPrefix("ledger.db") && !name.hasSuffix(".new")
    }

    /// Checks that the files of a copy can be used: authorities, server certificate, keys, the cluster's too.
    ///
    /// The ledger is checked apart.
    /// - Throws: ``TrustError``.
    package static func check(_ layout: TrustLayout) throws {
        try TrustFile.checkPrivateFolder(layout.folder)
        func bundle(_ path: String) throws -> PEMBundle {
            try PEMBundle(pem: try TrustFile.read(path, .secret), path: path)
        }
        let root = try CertificateAuthority(bundle: try bundle(layout.root), path: layout.root)
        for path in [layout.providerAuthority, layout.deviceAuthority] {
            _ = try CertificateAuthority(bundle: try bundle(path), path: path)
        }
        _ = try ServerCertificate(bundle: try bundle(layout.server), path: layout.server, root: root)
        let authority = try PEMBundle(pem: try TrustFile.read(layout.authority, .open), path: layout.authority)
        guard !authority.certificates.isEmpty else {
            throw TrustError(.damaged, "\(layout.authority) has no certificate")
        }
        _ = try TokenKeyRing(json: try TrustFile.read(layout.tokenKeys, .secret))
        _ = try ProviderKeyFile.keys(json: try TrustFile.read(layout.providerKeys, .secret))
        // The operator may keep it elsewhere.
        if TrustFile.exists(layout.announcementKey) { _ = try AnnouncementIssuer.key(in: layout) }
        _ = try JoiningFolder.clusterKey(at: layout.data)
    }
}
