import Crypto
import HeraldIdentity
package import HeraldModel
import X509

/// Issues and renews the server certificate that Herald's own root signs.
package struct ServerCertificateIssuer: Sendable {
    /// Shorter than the 825 days after which Apple's platforms refuse a certificate of a private authority.
    static let lifetime = Duration.seconds(820 * 86_400)
    /// The remaining lifetime from which the certificate is renewed, at a start and while the service runs.
    static let renewal = Duration.seconds(90 * 86_400)

    let folder: TrustFolder

    /// Issues a certificate if the present one lacks a name or expires soon, or if it is to be renewed now.
    ///
    /// Called under the lock. A certificate that the user provided stays unchanged.
    /// - Returns: Whether it issued one.
    @discardableResult
    func update(
        adding names: [ServerName],
        listening: [ServerName] = [],
        renewing: Bool = false,
        now: WallTime
    ) throws -> Bool {
        let former = try configuredNames()
        let local = Set(ServerName.local())
        let isOurs = try !TrustFile.exists(folder.layout.server) || folder.serverCertificate().isOurs
        let names = names + (isOurs ? listening.filter { !local.contains($0) } : [])
        let wanted = former.union(names)
        guard try renewing && isOurs || isDue(wanted, adding: names, now: now) else {
            guard renewing else { return false }
            throw TrustError(
                .invalidArgument,
                "another authority issued the certificate in \(folder.layout.server), so Herald cannot renew it: write the "
                    + "next one, its chain and its key into a file beside it, and rename that file to server.pem; a running "
                    + "service takes it up"
            )
        }
        if wanted != former || !TrustFile.exists(folder.layout.serverNames) {
            let lines = wanted.map(\.description).sorted().map { $0 + "\n" }.joined()
            try TrustFile.write(Array(lines.utf8), to: folder.layout.serverNames, .secret)
        }
        try issue(wanted.union(ServerName.local()), now: now)
        return true
    }

    /// Whether a start with these names issues a certificate.
    /// - Throws: ``TrustError`` if a file is damaged, or the user's own certificate lacks a name.
    func isDue(adding names: [ServerName], now: WallTime) throws -> Bool {
        try isDue(try configuredNames().union(names), adding: names, now: now)
    }

    private func isDue(_ wanted: Set<ServerName>, adding names: [ServerName], now: WallTime) throws -> Bool {
        guard TrustFile.exists(folder.layout.server) else { return true }
        let present = try folder.serverCertificate()
        guard !present.isOurs else {
            return present.isDue(at: now) || !present.names.isSuperset(of: wanted.union(ServerName.local()))
        }
        let lacking = names.filter { !$0.isNamed(in: present.names) }
        guard lacking.isEmpty else {
            throw TrustError(
                .invalidArgument,
                "the certificate in \(folder.layout.server) is your own and does not name "
                    + lacking.map(\.description).joined(separator: ", ")
                    + ": replace it by one that does, or remove the file to have Herald make one"
            )
        }
        return false
    }

    /// Renews the certificate if it expires soon; one that the user provided stays unchanged.
    /// - Returns: Whether it was renewed.
    @discardableResult
    package func renew(now: WallTime) async throws -> Bool {
        try await TrustLock.with(folder.layout) { try update(adding: [], now: now) }
    }

    /// A host name by which other machines reach the service; nil without one.
    ///
    /// The first, in alphabetical order, of the configured names that are neither patterns, nor local, nor Apple's.
    package func publicName() throws -> String? {
        let names = try configuredNames().subtracting(ServerName.apple).compactMap { name in
            if case .host(let host) = name, !host.contains("*"), !host.hasSuffix("localhost") { host } else { nil }
        }
        return names.min()
    }

    /// All names that operators have ever configured.
    ///
    /// The machine's own name is not among them, because containers get a new one at each start.
    private func configuredNames() throws -> Set<ServerName> {
        let path = folder.layout.serverNames
        guard TrustFile.exists(path) else { return [] }
        let text = String(decoding: try TrustFile.read(path, .secret), as: UTF8.self)
        return Set(
            try text.split(separator: "\n").map { line in
                guard let name = ServerName(String(line)) else {
                    throw TrustError(.damaged, "\(path) has a line that is not a name: remove that line")
                }
                return name
            }
        )
    }

    private func issue(_ names: Set<ServerName>, now: WallTime) throws {
        let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
        let subject = try DistinguishedName([
            .init(type: .RDNAttributeType.organizationName, utf8String: "Herald"),
            .init(type: .RDNAttributeType.commonName, utf8String: "localhost"),
        ])
        let certificate = try folder.root.issue(
            subject: subject,
            publicKey: key.publicKey,
            usage: .serverAuth,
            names: names.sorted { $0.description < $1.description }.map(\.generalName),
            now: now,
            lifetime: ServerCertificateIssuer.lifetime
        )
        let pem = try PEMBundle(certificates: [certificate], key: key).pem()
        try TrustFile.write(Array(pem.utf8), to: folder.layout.server, .secret)
    }
}
