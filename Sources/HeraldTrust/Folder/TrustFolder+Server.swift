import Crypto
package import HeraldModel
import X509

extension TrustFolder {
    /// Sees to it that the server certificate has all names that it should, and time left.
    ///
    /// Called under the lock.
    func updateServerCertificate(adding names: [ServerName], now: WallTime) throws {
        let former = try wantedNames()
        let wanted = former.union(names)
        if TrustFile.exists(layout.server) {
            let present = try serverCertificate()
            guard present.isOurs else {
                let lacking = names.filter { !present.names.contains($0) }
                guard lacking.isEmpty else {
                    throw TrustError(
                        .invalidArgument,
                        "the certificate in \(layout.server) is your own and does not name "
                            + lacking.map(\.description).joined(separator: ", ")
                            + ": put one in its place that does, or remove the file to have Herald make one"
                    )
                }
                return
            }
            let isLasting = !present.isDue(at: now)
            let hasNames = present.names.isSuperset(of: wanted.union(ServerName.local()))
            if isLasting, hasNames { return }
        }
        if wanted != former || !TrustFile.exists(layout.serverNames) {
            let lines = wanted.map(\.description).sorted().map { $0 + "\n" }.joined()
            try TrustFile.write(Array(lines.utf8), to: layout.serverNames, .secret)
        }
        try issueServerCertificate(wanted.union(ServerName.local()), now: now)
    }

    /// Exchanges the server certificate if it is near its end.
    ///
    /// One that users brought is left as it is.
    package func renewServerCertificate(now: WallTime) throws {
        try TrustLock.with(layout) { try updateServerCertificate(adding: [], now: now) }
    }

    /// The name by which other machines reach the service: of those that an operator gave it, the first in the order of
    /// the alphabet that is a host's and neither a pattern nor Apple's; nil if there is none.
    package func nameForOthers() throws -> String? {
        let names = try wantedNames().subtracting(ServerName.apple).compactMap { name in
            if case .host(let host) = name, !host.contains("*"), !host.hasSuffix("localhost") { host } else { nil }
        }
        return names.min()
    }

    /// The names that were ever asked for.
    ///
    /// The machine's own is not among them: containers get a new one at each start.
    private func wantedNames() throws -> Set<ServerName> {
        guard TrustFile.exists(layout.serverNames) else { return [] }
        let text = String(decoding: try TrustFile.read(layout.serverNames, .secret), as: UTF8.self)
        return Set(
            try text.split(separator: "\n").map { line in
                guard let name = ServerName(String(line)) else {
                    throw TrustError(.damaged, "\(layout.serverNames) holds a line that is no name: remove that line")
                }
                return name
            }
        )
    }

    private func issueServerCertificate(_ names: Set<ServerName>, now: WallTime) throws {
        let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
        let subject = try DistinguishedName([
            .init(type: .RDNAttributeType.organizationName, utf8String: "Herald"),
            .init(type: .RDNAttributeType.commonName, utf8String: "localhost"),
        ])
        let certificate = try root.issue(
            subject: subject,
            publicKey: key.publicKey,
            usage: .serverAuth,
            names: names.sorted { $0.description < $1.description }.map(\.generalName),
            now: now,
            lifetime: TrustFolder.serverLifetime
        )
        let pem = try PEMBundle(certificates: [certificate], key: key).pem()
        try TrustFile.write(Array(pem.utf8), to: layout.server, .secret)
    }
}
