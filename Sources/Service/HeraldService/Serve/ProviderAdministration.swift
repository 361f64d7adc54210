import HeraldConsole
import HeraldMailbox
import HeraldModel
import HeraldStores
package import HeraldTrust
import Logging

/// Credentials of providers, and apps.
extension ServiceAdministration {
    func credentials(_ page: PageRequest) async throws -> Page<CredentialEntry> {
        try await asked {
            let part = try await assembly.trust.folder.providers.page(after: page.after, limit: page.limit)
            let entries = part.items.map { entry($0) }
            // It comes behind all others.
            guard let own = assembly.trust.consoleKey.map({ CredentialEntry(console: $0) }), part.next == nil,
                own.id > page.after ?? ""
            else { return Page(items: entries, next: part.next) }
            guard entries.count < page.limit else { return Page(items: entries, next: entries.last?.id) }
            return Page(items: entries + [own], next: nil)
        }
    }

    func credential(_ id: String) async throws -> CredentialEntry {
        if id == ConsoleCredential.id, let key = assembly.trust.consoleKey { return CredentialEntry(console: key) }
        return try await asked { entry(try await assembly.trust.folder.providers.credential(id)) }
    }

    func revokeCredential(_ id: String) async throws -> CredentialEntry {
        guard id != ConsoleCredential.id else {
            throw AdminError(.conflict, "the console's own key is in no file, and ends with the service")
        }
        return try await revoke(id) {
            entry(try await assembly.trust.folder.providers.revoke(id, now: assembly.clock.now()))
        }
    }

    func issueCertificate(_ request: CertificateOrder) async throws -> IssuedCertificateEntry {
        let issued = try await asked {
            try await assembly.trust.folder.providers.issueCertificate(
                topics: try Self.topics(request.topics),
                team: request.team,
                environments: try Self.environments(request.environments),
                request: Array(request.csr.utf8),
                days: request.days ?? ProviderCredentials.certificateDays,
                now: assembly.clock.now()
            )
        }
        await reload(issued.record)
        return IssuedCertificateEntry(credential: entry(issued.record), certificate: issued.pem)
    }

    func addKey(_ request: KeyOrder) async throws -> CredentialEntry {
        let credential = try await asked {
            try await assembly.trust.folder.providers.addKey(
                publicKey: Array(request.publicKey.utf8),
                team: request.team,
                topics: try Self.topics(request.topics ?? []),
                environments: try Self.environments(request.environments),
                now: assembly.clock.now()
            )
        }
        await reload(credential)
        return entry(credential)
    }

    private func entry(_ credential: Credential) -> CredentialEntry {
        var entry = CredentialEntry(credential)
        let use = assembly.storage.store.senders.use(of: credential.id)
        (entry.firstUsed, entry.lastUsed) = (use?.first.rfc3339, use?.last.rfc3339)
        (entry.requests, entry.refused) = (use?.requests ?? 0, use?.refused ?? 0)
        return entry
    }

    /// Puts a new credential in force; if that fails, `/health` warns, and the answer is nowhere else.
    private func reload(_ credential: Credential) async {
        assembly.logger.notice(
            "credential made",
            metadata: ["credential": "\(credential.id)", "kind": "\(credential.kind.rawValue)"]
        )
        do {
            try await reloadTrust()
        } catch {
            assembly.logger.warning(
                "a new credential may not be in force yet",
                metadata: ["credential": "\(credential.id)", "error": "\(error)"]
            )
        }
    }

    private static func topics(_ names: [String]) throws -> [Topic] {
        try names.map { name in
            guard let topic = Topic(name) else {
                throw AdminError(.badRequest, "topics must be names like com.example.app")
            }
            return topic
        }
    }

    private static func environments(_ names: [String]?) throws -> Set<PushEnvironment> {
        guard let names else { return Set(PushEnvironment.allCases) }
        return Set(
            try names.map { name in
                guard let environment = PushEnvironment(rawValue: name) else {
                    throw AdminError(.badRequest, "environments must be production, sandbox, or both")
                }
                return environment
            }
        )
    }

    // MARK: - Apps

    func apps(of topic: Topic?, onlyUnused: Bool, _ page: PageRequest) async throws -> Page<AppEntry> {
        let usages = try await assembly.delivery.registry.appUsages()
        var entries =
            usages
            .filter { (topic == nil || $0.record.app.topic == topic) && ($0.isUnused || !onlyUnused) }
            .map { entry($0) }
        if !onlyUnused {
            // Topics that a team owns, and that no app has yet.
            let known = Set(usages.map { TopicScope.bundle(of: $0.record.app.topic) })
            entries += assembly.trust.providerTokens.credentials.claims.all.values
                .filter { (topic == nil || $0.topic == topic) && !known.contains($0.topic) }
                .map { claim in
                    var entry = AppEntry(claim.topic)
                    entry.show(claim)
                    return entry
                }
        }
        return Page(entries, page) { "\($0.topic) \($0.environment?.rawValue ?? "")" }
    }
}

extension AppEntry {
    /// Names the team that owns the topic.
    mutating func show(_ claim: TopicClaim?) {
        (owner, ownerSince, ownerOrigin) = (claim?.team, claim?.since.rfc3339, claim?.origin.rawValue)
    }
}

extension CredentialEntry {
    /// The key with which the console sends: valid until the process ends.
    package init(console key: ProviderKey) {
        self.init(
            id: ConsoleCredential.id,
            kind: .key,
            serial: nil,
            team: nil,
            topics: [],
            environments: PushEnvironment.allCases,
            created: key.created.rfc3339,
            expires: nil,
            revoked: nil
        )
        (requests, refused) = (0, 0)
    }

    package init(_ credential: Credential) {
        self.init(
            id: credential.id,
            kind: credential.kind,
            serial: credential.serial,
            team: credential.team,
            topics: credential.topics,
            environments: credential.environments.sorted { $0.rawValue < $1.rawValue },
            created: credential.created.rfc3339,
            expires: credential.expires?.rfc3339,
            revoked: credential.revoked?.rfc3339
        )
    }
}
