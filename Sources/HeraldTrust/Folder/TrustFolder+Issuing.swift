import Crypto
package import HeraldModel
import SwiftASN1
package import X509

/// A certificate as it is handed out.
package struct IssuedCertificate<Record: Sendable>: Sendable {
    package let record: Record
    /// The certificate alone.
    package let certificate: Certificate
    /// Certificate, chain, and private key, in that order; no key where a request was signed.
    package let pem: String
}

/// A provider key as it is handed out, once.
package struct IssuedKey: Sendable {
    package let credential: Credential
    /// PKCS#8 in PEM; a secret that the service does not keep.
    package let pem: String

    /// The name that clients of APNs expect: `AuthKey_<key id>.p8`.
    package var fileName: String { "AuthKey_\(credential.id).p8" }
}

extension TrustFolder {
    /// As Apple's push certificates.
    static let providerLifetime = Duration.seconds(365 * 86_400)
    /// The most topics of one credential ("Establishing a token-based connection to APNs").
    package static let maximumTopics = 400

    /// Issues a certificate for a provider.
    /// - Parameters:
    ///   - topics: At least one. The first becomes the subject's UID; with one alone, requests need not name it.
    ///   - team: Ten of `A`-`Z` and `0`-`9`, or nil for a certificate of no team.
    ///   - environments: At least one.
    ///   - request: A certificate signing request in PEM or DER, of which the key alone is taken; nil for a new key.
    ///   - now: When it begins.
    /// - Returns: The certificate; what it is, is on record.
    /// - Throws: ``TrustError/Code/invalidArgument``, ``TrustError/Code/badRequest``, ``TrustError/Code/noSigningKey``, or
    ///   what is wrong with the folder.
    package func issueProviderCertificate(
        topics: [Topic],
        team: String?,
        environments: Set<PushEnvironment>,
        request: [UInt8]? = nil,
        now: WallTime
    ) throws -> IssuedCertificate<Credential> {
        let topics = try TrustFolder.checked(topics)
        guard let first = topics.first else {
            throw TrustError(.invalidArgument, "a provider certificate needs a topic: name one with --topic")
        }
        try TrustFolder.check(team: team)
        try TrustFolder.check(environments)
        let holder = try CertificateHolder(request: request)
        var attributes: [RelativeDistinguishedName.Attribute] = [
            .init(type: AppleExtensions.userID, utf8String: first.name),
            .init(type: .RDNAttributeType.commonName, utf8String: "Apple Push Services: \(first.name)"),
        ]
        if let team { attributes.append(.init(type: .RDNAttributeType.organizationalUnitName, utf8String: team)) }
        var extensions = try environments.sorted { $0.rawValue < $1.rawValue }.map(AppleExtensions.mark)
        if topics.count > 1 { extensions.append(try AppleExtensions.topicList(topics)) }
        let certificate = try providerAuthority.issue(
            subject: DistinguishedName(attributes),
            publicKey: holder.publicKey,
            usage: .clientAuth,
            names: [],
            extensions: extensions,
            now: now,
            lifetime: TrustFolder.providerLifetime
        )
        let credential = try TrustLock.with(layout) {
            let credential = Credential(
                id: try newCredentialID(),
                kind: .certificate,
                serial: SerialText.text(certificate.serialNumber),
                team: team,
                topics: topics,
                environments: environments,
                created: now,
                expires: WallTime(certificate.notValidAfter)
            )
            try ledger.append(.credential(credential))
            return credential
        }
        return IssuedCertificate(
            record: credential,
            certificate: certificate,
            pem: try holder.pem(certificate, authority: providerAuthority)
        )
    }

    /// Makes a key for provider tokens.
    /// - Parameters:
    ///   - team: Ten of `A`-`Z` and `0`-`9`.
    ///   - topics: None for a key that is good for its whole team.
    ///   - environments: At least one.
    ///   - now: When it was made.
    /// - Returns: The key, of which the service keeps the public half alone.
    /// - Throws: ``TrustError/Code/invalidArgument``, or what is wrong with the folder.
    package func makeProviderKey(
        team: String,
        topics: [Topic],
        environments: Set<PushEnvironment>,
        now: WallTime
    ) throws -> IssuedKey {
        let topics = try TrustFolder.checked(topics)
        try TrustFolder.check(team: team)
        try TrustFolder.check(environments)
        let secret = P256.Signing.PrivateKey()
        return try TrustLock.with(layout) {
            let key = ProviderKey(
                id: try newCredentialID(),
                team: team,
                topics: topics,
                environments: environments,
                publicKey: secret.publicKey,
                created: now
            )
            let keys = try providerKeys() + [key]
            let credential = Credential(key)
            try ledger.append(.credential(credential))
            try TrustFile.write(try ProviderKeyFile(keys).json(), to: layout.providerKeys, .secret)
            return IssuedKey(credential: credential, pem: secret.pemRepresentation + "\n")
        }
    }

    private func newCredentialID() throws -> String {
        let taken = Set(try ledger.read().credentials.map(\.id) + providerKeys().map(\.id))
        while true {
            let id = ProviderKey.randomIdentifier()
            if !taken.contains(id) { return id }
        }
    }

    private static func checked(_ topics: [Topic]) throws -> [Topic] {
        var seen: Set<Topic> = []
        let distinct = topics.filter { seen.insert($0).inserted }
        guard distinct.count <= maximumTopics else {
            throw TrustError(.invalidArgument, "a credential has at most \(maximumTopics) topics")
        }
        return distinct
    }

    private static func check(team: String?) throws {
        guard let team, !ProviderKey.isIdentifier(team) else { return }
        throw TrustError(.invalidArgument, "a team has ten characters, each of A-Z or 0-9: TEAM000001, say")
    }

    private static func check(_ environments: Set<PushEnvironment>) throws {
        guard environments.isEmpty else { return }
        throw TrustError(.invalidArgument, "a credential is for production, for sandbox, or for both")
    }
}

extension Credential {
    /// A provider key, as operators see it.
    init(_ key: ProviderKey) {
        self.init(
            id: key.id,
            kind: .key,
            serial: nil,
            team: key.team,
            topics: key.topics,
            environments: key.environments,
            created: key.created,
            expires: nil,
            revoked: key.revoked
        )
    }
}
