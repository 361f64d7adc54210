import HeraldJSON
package import HeraldModel

/// Body of `POST /v1/links`.
package struct LinkRequest: Codable, Sendable {
    package let name: String?
    package let role: ConsoleRole

    package init(name: String?, role: ConsoleRole) {
        self.name = name
        self.role = role
    }
}

/// A one-time link: the page's address with `#login=` and the code.
package struct LinkAnswer: Codable, Sendable {
    package let code: String
    package let name: String
    package let role: ConsoleRole
    package let expires: String
}

/// Body of `POST /v1/session`: one of both.
package struct SessionRequest: Codable, Sendable {
    let code: String?
    let token: String?
}

/// The caller's session or token.
package struct SessionAnswer: Codable, SnakeCased, Sendable {
    package let name: String
    package let role: ConsoleRole
    package let proof: ConsoleCaller.Proof
    package let mode: ConsoleMode
    /// The least role that starts and stops drills.
    package let drills: ConsoleRole
    package let environments: [PushEnvironment]
    /// The secret that the page sends in the field `herald-console`; only in the answer to signing in.
    let pageSecret: String?

    init(
        _ member: ConsoleMember,
        proof: ConsoleCaller.Proof,
        of configuration: ConsoleConfiguration,
        pageSecret: String? = nil
    ) {
        self.pageSecret = pageSecret
        name = member.name
        role = member.role
        self.proof = proof
        mode = configuration.mode
        drills = configuration.drillsRole
        environments = PushEnvironment.allCases
    }
}

/// A session in `GET /v1/sessions`.
package struct SessionEntry: Codable, Sendable {
    package let id: String
    package let name: String
    package let role: ConsoleRole
    package let address: String
    package let opened: String
    package let used: String
    package let ends: String

    init(_ session: SessionTable.Session) {
        id = session.id
        name = session.member.name
        role = session.member.role
        address = session.address
        opened = session.opened.rfc3339
        used = session.used.rfc3339
        ends = session.ends.rfc3339
    }
}

/// Body of `POST /v1/tokens`.
package struct TokenRequest: Codable, Sendable {
    package let name: String
    package let role: ConsoleRole
    package let days: Int?

    package init(name: String, role: ConsoleRole, days: Int?) {
        self.name = name
        self.role = role
        self.days = days
    }
}

/// A named token; `token` is there only in the answer to its making.
package struct TokenEntry: Codable, Sendable {
    package let id: String
    package let name: String
    package let role: ConsoleRole
    package let created: String
    package let expires: String
    package let token: String?

    init(_ token: ConsoleToken, secret: String? = nil) {
        id = token.id
        name = token.name
        role = token.role
        created = WallTime(seconds: token.created).rfc3339
        expires = WallTime(seconds: token.expires).rfc3339
        self.token = secret
    }
}

/// Named tokens as JSON shows them, for a command that works on the file of a service that does not run.
extension ConsoleAccess {
    /// The tokens that have not ended, the newest first.
    package var tokenEntries: [TokenEntry] { tokens.map { TokenEntry($0) } }

    /// Makes a token, with its secret.
    /// - Throws: ``AdminError``.
    package func issue(_ request: TokenRequest) async throws -> TokenEntry {
        let (token, secret) = try await makeToken(request)
        return TokenEntry(token, secret: secret)
    }

    /// Revokes a token.
    /// - Throws: ``AdminError`` if there is none.
    package func withdraw(_ id: String) async throws {
        _ = try await revokeToken(id)
    }
}
