import Crypto
import HeraldIdentity
package import HeraldModel
import SwiftASN1
import X509

/// Issues, lists and revokes the certificates and keys of providers.
package struct ProviderCredentials: Sendable {
    /// One year, as Apple's push certificates, unless told otherwise.
    package static let certificateDays = 365
    /// The allowed lifetimes of a certificate, in days.
    package static let allowedDays = 1...3650
    /// The most topics of one credential ("Establishing a token-based connection to APNs").
    package static let maximumTopics = 400

    let folder: TrustFolder

    /// Certificates and keys of providers after an identifier, by identifier.
    package func page(after id: String?, limit: Int) async throws -> LedgerPage<Credential> {
        let certificates = try await folder.store.certificates(after: id, limit: limit + 1)
        let keys = try folder.providerKeys().filter { $0.id > id ?? "" }.map { Credential($0) }
        return LedgerPage((certificates + keys).sorted { $0.id < $1.id }, limit: limit, id: \.id)
    }

    /// The certificate or key of an identifier.
    /// - Throws: ``TrustError/Code/unknownID``.
    package func credential(_ id: String) async throws -> Credential {
        if let key = try folder.providerKeys().first(where: { $0.id == id }) { return Credential(key) }
        guard let certificate = try await folder.store.certificate(id) else { throw ProviderCredentials.unknown(id) }
        return certificate
    }

    private static func unknown(_ id: String) -> TrustError {
        TrustError(.unknownID, "no credential is named \(id.debugDescription): `herald provider list` lists them")
    }

    /// Issues a certificate for a provider, and enters it in the ledger.
    ///
    /// It has at least one topic and one environment. The first topic becomes the subject's UID. With one topic,
    /// requests need not name it. A team has ten of `A`-`Z` and `0`-`9`, or is nil for none. Of the certificate signing request, in PEM or
    /// DER, only the key counts; without one there is a new key.
    /// - Throws: ``TrustError/Code/invalidArgument``, ``TrustError/Code/badRequest``, ``TrustError/Code/noSigningKey``,
    ///   or a problem of the folder.
    package func issueCertificate(
        topics: [Topic],
        team: String?,
        environments: Set<PushEnvironment>,
        request: [UInt8]? = nil,
        days: Int = certificateDays,
        now: WallTime
    ) async throws -> IssuedCertificate<Credential> {
        let topics = try ProviderCredentials.checked(topics)
        guard let first = topics.first else {
            throw TrustError(.invalidArgument, "a provider certificate needs a topic: name one with --topic")
        }
        try ProviderCredentials.check(team: team)
        try ProviderCredentials.check(environments)
        guard ProviderCredentials.allowedDays.contains(days) else {
            throw TrustError(
                .invalidArgument,
                "a certificate is valid for 1 to \(ProviderCredentials.allowedDays.upperBound) days"
            )
        }
        let request = try CertificateRequest(request)
        var attributes: [RelativeDistinguishedName.Attribute] = [
            .init(type: AppleExtensions.userID, utf8String: first.name),
            .init(type: .RDNAttributeType.commonName, utf8String: "Apple Push Services: \(first.name)"),
        ]
        if let team { attributes.append(.init(type: .RDNAttributeType.organizationalUnitName, utf8String: team)) }
        var extensions = try environments.sorted { $0.rawValue < $1.rawValue }.map(AppleExtensions.mark)
        if topics.count > 1 { extensions.append(try AppleExtensions.topicList(topics)) }
        let certificate = try folder.providerAuthority.issue(
            subject: DistinguishedName(attributes),
            publicKey: request.publicKey,
            usage: .clientAuth,
            names: [],
            extensions: extensions,
            now: now,
            lifetime: .seconds(days * 86_400)
        )
        let pem = try request.pem(certificate, authority: folder.providerAuthority)
        if let team { try await claim(topics, for: team, now: now) }
        while true {
            let credential = Credential(
                id: try await newID(),
                kind: .certificate,
                serial: SerialNumberText.text(certificate.serialNumber),
                team: team,
                topics: topics,
                environments: environments,
                created: now,
                expires: WallTime(certificate.notValidAfter)
            )
            guard try await folder.store.add(credential) else { continue }
            return IssuedCertificate(record: credential, certificate: certificate, pem: pem)
        }
    }

    /// Makes a key for provider tokens, of which the service keeps only the public half.
    ///
    /// A team has ten of `A`-`Z` and `0`-`9`. Without topics it is a key of the whole team. It has at least one
    /// environment.
    /// - Throws: ``TrustError/Code/invalidArgument``, or a problem of the folder.
    package func makeKey(
        team: String,
        topics: [Topic],
        environments: Set<PushEnvironment>,
        now: WallTime
    ) async throws -> IssuedKey {
        let secret = P256.Signing.PrivateKey()
        let credential = try await addKey(
            secret.publicKey,
            team: team,
            topics: topics,
            environments: environments,
            now: now
        )
        return IssuedKey(credential: credential, pem: secret.pemRepresentation + "\n")
    }

    /// Takes the public half of a key that its owner has made, for provider tokens, as
    /// ``makeKey(team:topics:environments:now:)``.
    ///
    /// It is of P-256, in PEM (`BEGIN PUBLIC KEY`).
    /// - Throws: ``TrustError/Code/badRequest``, ``TrustError/Code/invalidArgument``, or a problem of the folder.
    package func addKey(
        publicKey: [UInt8],
        team: String,
        topics: [Topic],
        environments: Set<PushEnvironment>,
        now: WallTime
    ) async throws -> Credential {
        let key: P256.Signing.PublicKey
        do {
            key = try PEMFile(publicKey).verificationKey()
        } catch {
            throw TrustError(
                .badRequest,
                "the public key cannot be used: \(error) (`openssl pkey -in KEY -pubout` writes a public key)"
            )
        }
        return try await addKey(key, team: team, topics: topics, environments: environments, now: now)
    }

    private func addKey(
        _ publicKey: P256.Signing.PublicKey,
        team: String,
        topics: [Topic],
        environments: Set<PushEnvironment>,
        now: WallTime
    ) async throws -> Credential {
        let topics = try ProviderCredentials.checked(topics)
        try ProviderCredentials.check(team: team)
        try ProviderCredentials.check(environments)
        return try await TrustLock.with(folder.layout) {
            let key = ProviderKey(
                id: try await newID(),
                team: team,
                topics: topics,
                environments: environments,
                publicKey: publicKey,
                created: now
            )
            try await claim(topics, for: team, now: now)
            try write(try folder.providerKeys() + [key])
            return Credential(key)
        }
    }

    /// Claims the topics of a new credential that no team owns.
    ///
    /// Before the credential is in effect: an interruption leaves a claim that the operator wanted, and no credential.
    private func claim(_ topics: [Topic], for team: String, now: WallTime) async throws {
        guard !topics.isEmpty else { return }
        let claims = topics.map { TopicClaim($0, team: team, origin: .credential, since: now) }
        try await folder.store.claim(claims, takesOver: false)
    }

    /// Revokes a certificate or key, permanently; its team keeps its topics.
    /// - Returns: The revoked credential.
    /// - Throws: ``TrustError/Code/unknownID``, ``TrustError/Code/alreadyRevoked``.
    @discardableResult
    package func revoke(_ id: String, now: WallTime) async throws -> Credential {
        if let key = try await revokeKey(id, now: now) { return key }
        let unknown = ProviderCredentials.unknown(id)
        // Before the attempt: a certificate of another node that comes after it would look revoked.
        guard try await folder.store.certificate(id) != nil else { throw unknown }
        let isRevoked = try await folder.store.revokeCertificate(id, at: now)
        guard let credential = try await folder.store.certificate(id) else { throw unknown }
        try await folder.publishRevocation(of: id, now: now)
        guard isRevoked else { throw ProviderCredentials.wasRevoked(credential) }
        return credential
    }

    /// - Returns: nil if no key has the identifier.
    private func revokeKey(_ id: String, now: WallTime) async throws -> Credential? {
        try await TrustLock.with(folder.layout) {
            var keys = try folder.providerKeys()
            guard let index = keys.firstIndex(where: { $0.id == id }) else { return nil }
            guard keys[index].revoked == nil else { throw ProviderCredentials.wasRevoked(Credential(keys[index])) }
            keys[index].revoked = now
            try write(keys)
            return Credential(keys[index])
        }
    }

    private static func wasRevoked(_ credential: Credential) -> TrustError {
        TrustError(
            .alreadyRevoked,
            "\(credential.id) was revoked at \(credential.revoked?.rfc3339 ?? "an earlier time")"
        )
    }

    private func write(_ keys: [ProviderKey]) throws {
        try TrustFile.write(try ProviderKeyFile(keys).json(), to: folder.layout.providerKeys, .secret)
    }

    /// An identifier that no key and no certificate has.
    func newID() async throws -> String {
        let taken = Set(try folder.providerKeys().map(\.id))
        while true {
            let id = ProviderKey.randomIdentifier()
            if !taken.contains(id), try await folder.store.certificate(id) == nil { return id }
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
        guard let team, !ProviderToken.isIdentifier(team) else { return }
        throw TrustError(.invalidArgument, "a team has ten characters of A-Z and 0-9, for example TEAM000001")
    }

    private static func check(_ environments: Set<PushEnvironment>) throws {
        guard environments.isEmpty else { return }
        throw TrustError(.invalidArgument, "a credential needs an environment: production, sandbox, or both")
    }
}

extension Credential {
    /// The operator's view of a provider key.
    fileprivate init(_ key: ProviderKey) {
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
