import Foundation
package import HeraldModel
import X509

/// The folder in which a service keeps what trust rests on.
///
/// Made by the first start, or `herald init`. Users who bring a server certificate of their own put it in the place of
/// `server.pem` (certificate, chain, key) and its authority in that of `ca.pem`; it is then left as it is. An authority
/// for providers or devices of their own takes the place of that one's file, without its key if it is kept elsewhere.
package struct TrustFolder: Sendable {
    /// Short of the 825 days after which Apple's platforms refuse a certificate of a private authority.
    static let serverLifetime = Duration.seconds(820 * 86_400)
    /// A server certificate that ends sooner than this is exchanged, at a start and while the service runs.
    static let serverRenewal = Duration.seconds(90 * 86_400)

    package let layout: TrustLayout
    package let root: CertificateAuthority
    package let providerAuthority: CertificateAuthority
    package let deviceAuthority: CertificateAuthority

    /// Opens the folder, and makes what a first start has to make.
    ///
    /// To be called at each start: it also finishes a first start that was cut short, adds names to the server
    /// certificate, exchanges one that is near its end, and writes a revocation list that does not yet say what the
    /// ledger says.
    /// - Parameters:
    ///   - data: The data folder; made if it is not there.
    ///   - hostnames: Names and addresses that the server certificate is to have from now on.
    ///   - asApple: Whether it is to have the names of Apple's services too.
    ///   - now: The present moment.
    /// - Returns: The folder, complete.
    /// - Throws: ``TrustError``; what it says is missing, damaged or open to others is left as it is.
    package static func create(
        at data: String,
        hostnames: [String] = [],
        asApple: Bool = false,
        now: WallTime
    ) throws -> TrustFolder {
        let layout = TrustLayout(data: data)
        let names = try hostnames.map { text in
            guard let name = ServerName(text) else {
                throw TrustError(.invalidArgument, "\(text.debugDescription) is not a host name, nor an address")
            }
            return name
        }
        if mkdir(layout.data, 0o755) != 0, errno != EEXIST {
            throw TrustFile.failure(.unwritable, "cannot make the folder \(layout.data)")
        }
        try TrustFile.makePrivateFolder(layout.folder)
        return try TrustLock.with(layout) {
            // Written last, so that a first start is over when it is there.
            let isComplete = TrustFile.exists(layout.authority)
            if isComplete { try checkAuthority(layout) }
            let folder = try TrustFolder(layout: layout, makingMissing: !isComplete, now: now)
            if !isComplete { try folder.makeRecords(now: now) }
            try folder.publishRevocations(now: now)
            try folder.updateServerCertificate(adding: names + (asApple ? ServerName.apple : []), now: now)
            if !isComplete {
                let pem = try PEMBundle(certificates: [folder.root.certificate]).pem()
                try TrustFile.write(Array(pem.utf8), to: layout.authority, .open)
            }
            return folder
        }
    }

    /// Users may have put an authority of their own there; what is none, nobody could trust.
    private static func checkAuthority(_ layout: TrustLayout) throws {
        let pem = try TrustFile.read(layout.authority, .open)
        guard let bundle = try? PEMBundle(pem: pem, path: layout.authority), !bundle.certificates.isEmpty else {
            throw TrustError(
                .damaged,
                "\(layout.authority) holds no certificate: restore it from a backup, or remove it to have it made again"
            )
        }
    }

    /// Opens the folder without writing to it.
    /// - Throws: ``TrustError/Code/folderMissing`` if there is none yet, or what is wrong with it.
    package static func load(at data: String) throws -> TrustFolder {
        let layout = TrustLayout(data: data)
        guard TrustFile.exists(layout.folder), TrustFile.exists(layout.authority) else {
            throw TrustError(
                .folderMissing,
                "there is no service in \(layout.data) yet: make one with `herald init` or `herald serve`, "
                    + "or name another folder with --data"
            )
        }
        try TrustFile.checkPrivateFolder(layout.folder)
        return try TrustFolder(layout: layout, makingMissing: false, now: WallTime(seconds: 0))
    }

    private init(layout: TrustLayout, makingMissing: Bool, now: WallTime) throws {
        self.layout = layout
        // Tells services apart whose authorities have otherwise the same names.
        let mark = String(UInt32.random(in: .min ... .max), radix: 16)
        func authority(_ path: String, _ name: String) throws -> CertificateAuthority {
            if makingMissing, !TrustFile.exists(path) {
                let authority = try CertificateAuthority.make(name: "\(name) \(mark)", now: now)
                try TrustFile.write(Array(try authority.bundle().pem().utf8), to: path, .secret)
                return authority
            }
            let bundle = try PEMBundle(pem: try TrustFile.read(path, .secret), path: path)
            return try CertificateAuthority(bundle: bundle, path: path)
        }
        root = try authority(layout.root, "Herald Root")
        providerAuthority = try authority(layout.providerAuthority, "Herald Providers")
        deviceAuthority = try authority(layout.deviceAuthority, "Herald Devices")
    }

    /// The authority that signs one kind of peers.
    package func authority(of kind: PeerKind) -> CertificateAuthority {
        kind == .provider ? providerAuthority : deviceAuthority
    }

    /// What was issued and revoked.
    package var ledger: CredentialLedger {
        CredentialLedger(path: layout.ledger)
    }

    /// What the doors show.
    package func serverCertificate() throws -> ServerCertificate {
        let bundle = try PEMBundle(pem: try TrustFile.read(layout.server, .secret), path: layout.server)
        return try ServerCertificate(bundle: bundle, path: layout.server, root: root)
    }

    /// The keys of device tokens.
    package func tokenKeys() throws -> TokenKeyRing {
        try TokenKeyRing(json: try TrustFile.read(layout.tokenKeys, .secret))
    }

    /// Changes the keys of device tokens.
    package func updateTokenKeys(_ change: (inout TokenKeyRing) throws -> Void) throws {
        try TrustLock.with(layout) {
            var ring = try tokenKeys()
            try change(&ring)
            try TrustFile.write(try ring.json(), to: layout.tokenKeys, .secret)
        }
    }

    /// The keys of provider tokens, revoked ones too.
    package func providerKeys() throws -> [ProviderKey] {
        try ProviderKeyFile.keys(json: try TrustFile.read(layout.providerKeys, .secret))
    }

    /// The topics that provider certificates name for a team, and that are not revoked.
    func certificateClaims() throws -> Set<CredentialBook.Claim> {
        let certificates = try ledger.read().credentials.filter { $0.kind == .certificate && $0.revoked == nil }
        return certificates.reduce(into: []) { claims, certificate in
            guard let team = certificate.team else { return }
            for topic in certificate.topics { claims.insert(CredentialBook.Claim(topic: topic, team: team)) }
        }
    }

    /// All that decides what a provider token may do.
    package func credentialBook() throws -> CredentialBook {
        CredentialBook(keys: try providerKeys(), certificateClaims: try certificateClaims())
    }

    /// A book of the revocation lists, read for the first time by its ``RevocationBook/reload()``.
    package func revocationBook(policy: RevocationPolicy = RevocationPolicy()) -> RevocationBook {
        let sources = PeerKind.allCases.map { kind in
            (kind, RevocationBook.Source(path: layout.revocationList(kind), authority: authority(of: kind)))
        }
        return RevocationBook(sources: Dictionary(uniqueKeysWithValues: sources), policy: policy)
    }

    private func makeRecords(now: WallTime) throws {
        if !TrustFile.exists(layout.tokenKeys) {
            try TrustFile.write(try TokenKeyRing(now: now).json(), to: layout.tokenKeys, .secret)
        }
        if !TrustFile.exists(layout.providerKeys) {
            try TrustFile.write(try ProviderKeyFile([]).json(), to: layout.providerKeys, .secret)
        }
        if !TrustFile.exists(layout.ledger) {
            try ledger.begin(at: now)
        }
    }
}
