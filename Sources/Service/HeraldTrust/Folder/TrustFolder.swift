import Foundation
import HeraldIdentity
package import HeraldModel
import X509

/// The folder with the authorities, keys, credentials and revocation lists of a service.
///
/// The first start, or `herald init`, creates it. Users can replace `server.pem` (certificate, chain, key) and `ca.pem` by
/// their own server certificate and its authority, which Herald then leaves unchanged. Their own authority for providers or
/// devices replaces that authority's file; its key may be kept elsewhere.
package struct TrustFolder: Sendable {
    /// Opens the store of a folder; the flag allows it to create a missing one.
    package typealias StoreOpener = @Sendable (TrustLayout, Bool) throws -> any TrustStore

    package let layout: TrustLayout
    /// The ledger.
    package let store: any TrustStore
    package let root: CertificateAuthority
    package let providerAuthority: CertificateAuthority
    package let deviceAuthority: CertificateAuthority
    /// Decides over invitations in a cluster; nil where the ledger does.
    package var invitationUses: (any InvitationUses)?
    /// Whether this start has written `ca.pem`, which was missing and names Herald's own root alone.
    private(set) var hasWrittenAuthority = false

    /// Opens the folder, or creates it and the data folder.
    ///
    /// Called at each start. It also finishes an interrupted first start, adds names to the server certificate, renews
    /// one that expires soon, and updates revocation lists from the ledger.
    ///
    /// `hostnames` are added to the server certificate; with `asApple` the names of Apple's services, too. Of the
    /// addresses and names on which the service is listening, one that a certificate of Herald's own lacks is added,
    /// and what stands for all addresses is not. `addresses` are what devices are told; nil to leave the announcement
    /// as it is. With `renewing` the next server certificate is made, also if the present one is good for long.
    /// - Returns: The folder, complete.
    /// - Throws: ``TrustError``; the files that it names stay unchanged.
    package static func create(
        at data: String,
        hostnames: [String] = [],
        listening: [String] = [],
        asApple: Bool = false,
        addresses: [ServiceEndpoint]? = nil,
        renewing: Bool = false,
        store: StoreOpener,
        now: WallTime
    ) async throws -> TrustFolder {
        let names = try serverNames(hostnames)
        let layout = try JoiningFolder.makeFolders(at: data)
        return try await TrustLock.with(layout) {
            // The first start writes this file last.
            let isComplete = TrustFile.exists(layout.authority)
            let isLost = !isComplete && TrustFile.exists(layout.ledger)
            if isComplete { try checkAuthority(layout) }
            var folder = try TrustFolder(layout: layout, makingMissing: !isComplete, store: store, now: now)
            if isLost { try folder.refuseOtherAuthority() }
            try await folder.revocations.publish(now: now)
            let others = listening.filter { NumericAddress($0)?.isAny != true }.compactMap { ServerName($0) }
            try folder.server.update(
                adding: names + (asApple ? ServerName.apple : []),
                listening: others,
                renewing: renewing,
                now: now
            )
            if !isComplete {
                let pem = try PEMBundle(certificates: [folder.root.certificate]).pem()
                try TrustFile.write(Array(pem.utf8), to: layout.authority, .open)
                folder.hasWrittenAuthority = true
            }
            do {
                if let addresses { try folder.announcements.update(addresses: addresses, now: now) }
            } catch let error as TrustError where [.noSigningKey, .invalidArgument].contains(error.code) {
                // The service serves; `ServiceTransition` says what devices do not hear.
            }
            return folder
        }
    }

    /// Reads what ``create(at:hostnames:listening:asApple:addresses:renewing:store:now:)`` reads, without writing.
    /// - Returns: The files that a start writes again because they are missing or damaged.
    /// - Throws: ``TrustError`` if a start would.
    package func check(hostnames: [String], now: WallTime) async throws -> [String] {
        let missing = [layout.authority, layout.server].filter { !TrustFile.exists($0) }
        if missing.contains(layout.authority) {
            try refuseOtherAuthority()
        } else {
            try TrustFolder.checkAuthority(layout)
        }
        let lists = try await revocations.due().filter { $0.present == nil }
        _ = try server.isDue(adding: try TrustFolder.serverNames(hostnames), now: now)
        return missing + lists.map(\.source.path)
    }

    private static func serverNames(_ hostnames: [String]) throws -> [ServerName] {
        try hostnames.map { text in
            guard let name = ServerName(text) else {
                throw TrustError(.invalidArgument, "\(text.debugDescription) is neither a host name nor an address")
            }
            return name
        }
    }

    /// Refuses to write Herald's own authority for clients that use the user's certificate, which it did not sign.
    private func refuseOtherAuthority() throws {
        guard TrustFile.exists(layout.server), try !serverCertificate().isOurs else { return }
        throw TrustError(
            .missing,
            "\(layout.authority) is missing, and another authority issued the certificate in \(layout.server): copy ca.pem from "
                + "a backup, or write into it the certificate of that authority"
        )
    }

    /// Checks the file that clients trust, which users may have replaced.
    private static func checkAuthority(_ layout: TrustLayout) throws {
        let pem = try TrustFile.read(layout.authority, .open)
        guard let bundle = try? PEMBundle(pem: pem, path: layout.authority), !bundle.certificates.isEmpty else {
            throw TrustError(
                .damaged,
                "\(layout.authority) has no certificate: \(TrustFile.remedy(forDamaged: layout.authority))"
            )
        }
    }

    /// Opens the folder without writing to it.
    /// - Throws: ``TrustError/Code/folderMissing``, or a problem of the folder.
    package static func load(at data: String, store: StoreOpener) throws -> TrustFolder {
        let layout = TrustLayout(data: data)
        guard TrustFile.exists(layout.authority) || TrustFile.exists(layout.ledger) else {
            throw TrustError(
                .folderMissing,
                "there is no service in \(layout.data) yet: create one with `herald init` or `herald serve`, "
                    + "or name another folder with --data"
            )
        }
        try TrustFile.checkPrivateFolder(layout.folder)
        return try TrustFolder(layout: layout, makingMissing: false, store: store, now: WallTime(seconds: 0))
    }

    /// Opens the folder; with `makingMissing` it makes missing files.
    ///
    /// A first start makes the ledger after them, so with a ledger a missing file is a lost one.
    private init(layout: TrustLayout, makingMissing: Bool, store: StoreOpener, now: WallTime) throws {
        self.layout = layout
        let makesFiles = makingMissing && !TrustFile.exists(layout.ledger)
        // Distinguishes the authorities of different services.
        let suffix = Hex.random(bytes: 4)
        func authority(_ path: String, _ name: String) throws -> CertificateAuthority {
            if makesFiles, !TrustFile.exists(path) {
                let authority = try CertificateAuthority.make(name: "\(name) \(suffix)", now: now)
                try TrustFile.write(Array(try authority.bundle().pem().utf8), to: path, .secret)
                return authority
            }
            return try CertificateAuthority(bundle: try TrustFolder.bundle(path, .secret), path: path)
        }
        root = try authority(layout.root, "Herald Root")
        providerAuthority = try authority(layout.providerAuthority, "Herald Providers")
        deviceAuthority = try authority(layout.deviceAuthority, "Herald Devices")
        if makesFiles { try TrustFolder.makeRecords(layout, now: now) }
        self.store = try store(layout, makingMissing)
        if TrustFile.exists(layout.announcementKey) { _ = try announcements.key() }
    }

    package func authority(of kind: PeerKind) -> CertificateAuthority {
        kind == .provider ? providerAuthority : deviceAuthority
    }

    package var devices: DeviceCertificates { DeviceCertificates(folder: self) }
    package var providers: ProviderCredentials { ProviderCredentials(folder: self) }
    package var topics: TopicOwners { TopicOwners(folder: self) }
    package var invitations: Invitations { Invitations(folder: self) }
    package var server: ServerCertificateIssuer { ServerCertificateIssuer(folder: self) }
    package var announcements: AnnouncementIssuer { AnnouncementIssuer(folder: self) }
    var revocations: RevocationPublisher { RevocationPublisher(folder: self) }

    /// Publishes a revocation that is in the ledger.
    func publishRevocation(of id: String, now: WallTime) async throws {
        do {
            try await TrustLock.with(layout) { try await revocations.publish(now: now) }
        } catch let error as TrustError {
            throw TrustError(
                error.code,
                "\(id) is revoked in the ledger, but not in the revocation list; repeat the command: \(error.message)"
            )
        }
    }

    /// The certificates (DER) that clients trust.
    package func publicAuthorities() throws -> [[UInt8]] {
        // A certificate that stands there twice counts once.
        try Self.bundle(layout.authority, .open).certificates.map(PEMBundle.der)
            .reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    private static func bundle(_ path: String, _ secrecy: TrustFile.Secrecy) throws -> PEMBundle {
        let pem = try TrustFile.read(path, secrecy)
        do {
            return try PEMBundle(pem: pem, path: path)
        } catch let error as TrustError {
            throw TrustError(error.code, "\(error.message): \(TrustFile.remedy(forDamaged: path))")
        }
    }

    /// The certificate of the listeners.
    package func serverCertificate() throws -> ServerCertificate {
        try ServerCertificate(bundle: try Self.bundle(layout.server, .secret), path: layout.server, root: root)
    }

    /// A certificate that is to become the listeners'.
    package func serverCertificate(at path: String) throws -> ServerCertificate {
        let bundle = try PEMBundle(pem: try TrustFile.read(path, .open), path: path)
        return try ServerCertificate(bundle: bundle, path: path, root: root)
    }

    /// The keys of device tokens.
    package func tokenKeys() throws -> TokenKeyRing {
        try TokenKeyRing(json: try TrustFile.read(layout.tokenKeys, .secret))
    }

    /// Changes the keys of device tokens.
    package func updateTokenKeys(_ change: (inout TokenKeyRing) throws -> Void) async throws {
        try await TrustLock.with(layout) {
            var ring = try tokenKeys()
            try change(&ring)
            try TrustFile.write(try ring.json(), to: layout.tokenKeys, .secret)
        }
    }

    /// The keys of provider tokens, with the revoked ones.
    package func providerKeys() throws -> [ProviderKey] {
        try ProviderKeyFile.keys(json: try TrustFile.read(layout.providerKeys, .secret))
    }

    /// The credentials that decide what a provider token may do.
    package func credentialTable() async throws -> CredentialTable {
        let claims = try await store.topicClaims(after: nil) ?? TopicClaims(version: .min, [])
        return CredentialTable(keys: try providerKeys(), claims: claims)
    }

    /// The revocation lists, empty until their first ``RevocationLists/reload()``.
    package func revocationLists(policy: RevocationPolicy = RevocationPolicy()) -> RevocationLists {
        let sources = PeerKind.allCases.map { ($0, revocationSource(of: $0)) }
        return RevocationLists(sources: Dictionary(uniqueKeysWithValues: sources), policy: policy)
    }

    func revocationSource(of kind: PeerKind) -> RevocationLists.Source {
        RevocationLists.Source(path: layout.revocationList(kind), authority: authority(of: kind))
    }

    private static func makeRecords(_ layout: TrustLayout, now: WallTime) throws {
        if !TrustFile.exists(layout.tokenKeys) {
            try TrustFile.write(try TokenKeyRing(now: now).json(), to: layout.tokenKeys, .secret)
        }
        try AnnouncementIssuer.makeKey(layout)
        if !TrustFile.exists(layout.providerKeys) {
            try TrustFile.write(try ProviderKeyFile([]).json(), to: layout.providerKeys, .secret)
        }
    }
}
